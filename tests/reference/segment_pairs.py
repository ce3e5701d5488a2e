"""Slow, obvious versions of the formats of pairs and sentences: lists of tokens, appended and deleted one by one.

A document is a list of sentences, a sentence a list of tokens. Pairs come back as (first segment, second segment,
label, forced), the label None where there is none.
"""


def below(rng, number):
    return int(rng.random() * number)


def flatten(sentences):
    return [token for sentence in sentences for token in sentence]


def truncate(a, b, room, rng):
    a, b = list(a), list(b)
    while len(a) + len(b) > room:
        longer = a if len(a) > len(b) else b
        if rng.random() < 0.5:
            del longer[0]
        else:
            longer.pop()
    return a, b


def from_another_document(documents, index, rng, wanted):
    for _ in range(10):
        other = below(rng, len(documents))
        if other != index:
            break
    segment = []
    for sentence in documents[other][below(rng, len(documents[other])) :]:
        segment += sentence
        if len(segment) >= wanted:
            break
    return segment


def next_sentence(documents, index, rng, *, room, short_rate=0.1, random_next=True, single="random"):
    """BERT's pairs, or with random_next=False ALBERT's."""
    document = documents[index]
    target = room
    if rng.random() < short_rate:
        target = 2 + below(rng, room - 1)
    pairs, chunk, i = [], [], 0
    while i < len(document):
        chunk.append(document[i])
        if i == len(document) - 1 or len(flatten(chunk)) >= target:
            forced = len(chunk) == 1
            if forced and not random_next and single == "skip":
                chunk = []
                i += 1
                continue
            a_end = 1 + below(rng, len(chunk) - 1) if len(chunk) >= 2 else 1
            a, b = flatten(chunk[:a_end]), flatten(chunk[a_end:])
            label = 0
            if forced or (random_next and rng.random() < 0.5):
                label = 1
                b = from_another_document(documents, index, rng, target - len(a))
                i -= len(chunk) - a_end
            elif not random_next and rng.random() < 0.5:
                label = 1
                a, b = b, a
            pairs.append((*truncate(a, b, room, rng), label, forced))
            chunk = []
        i += 1
    return pairs


def sentence_pair(documents, index, rng, *, room):
    """RoBERTa's SENTENCE-PAIR."""
    document = documents[index]
    pairs, i = [], 0
    while i < len(document):
        forced = i == len(document) - 1
        follows = not forced and rng.random() >= 0.5
        second = document[i + 1] if follows else from_another_document(documents, index, rng, 1)
        pairs.append((*truncate(document[i], second, room, rng), int(not follows), forced))
        i += 2 if follows else 1
    return pairs


def electra(document, rng, *, length, specials):
    """ELECTRA's one or two segments; the second is empty where there is one."""
    pairs, chunk, target = [], [], None
    for i, sentence in enumerate(document):
        if target is None:
            target = 5 + below(rng, length - 4) if rng.random() < 0.05 else length
        chunk.append(sentence)
        if len(flatten(chunk)) < target and i < len(document) - 1:
            continue
        first_target = 100_000 if rng.random() < 0.1 else (target - specials) // 2
        first, second = [], []
        for part in chunk:
            fits = len(first) + len(part) < first_target
            if not second and (not first or fits or (len(first) < first_target and rng.random() < 0.5)):
                first += part
            else:
                second += part
        first = first[: length - (specials - 1)]
        second = second[: max(0, length - len(first) - specials)]
        pairs.append((first, second, None, False))
        chunk, target = [], None
    return pairs


def blocks(documents, *, room, separator, across_documents):
    """Whole sentences as many as fit, a separator between two documents; longer sentences in pieces."""
    made, block = [], []
    for document in documents:
        is_first = True
        for sentence in document:
            for start in range(0, len(sentence), room):
                piece = sentence[start : start + room]
                between = [separator] if is_first and block else []
                if block and len(block) + len(between) + len(piece) > room:
                    made.append(block)
                    block, between = [], []
                block += between + piece
                is_first = False
        if not across_documents and block:
            made.append(block)
            block = []
    return made + ([block] if block else [])
