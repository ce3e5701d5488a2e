r"""Winograd schemas: to what a pronoun refers, as T5 asks it.

    wsc: The stable was very roomy, ... into the yard , which made *it* pleasant and airy.    ->    stable

The model names the referent. WSC of SuperGLUE and WNLI of GLUE say of one candidate whether it is right: a prediction
is compared with it (`predicted_referent`). For training only right candidates are of use.

Reference: Raffel et al., arXiv:1910.10683, section 2.4 and appendix D.12;
`wsc`, `wsc_simple`, `wnli_simple` and `definite_pronoun_resolution_simple` of t5.data.preprocessors, `wsc_simple` of
t5.data.postprocessors.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from t2t.data.labelled_texts import NO_LABEL, UNKNOWN, label_id, numbers
from t2t.data.official_files import Example, Row
from t2t.errors import UsageError

PREFIX = "wsc: "
LABELS = ("False", "True")

PRONOUNS = frozenset({"he", "she", "they", "it", "her", "his", "their", "them", "him"})
"""The words of WNLI's premises that may be the pronoun."""

DETERMINERS = frozenset(
    "a an few her his each every many much my our some that the their these this those which whose your".split()
)
"""Words that do not count when a prediction is compared with a referent."""

MISPLACED = {
    "Good for him,": "Good for *him* ,",
    "might want to use it , but": "might want to use *it* , but",
}
"""Places of WSC where the number of the word does not lead to the pronoun: the words there, and how they are marked."""


def referent(row: Row, split: str) -> list[Example]:
    """WSC: the pronoun between asterisks, and the noun that a row asks about; in training only where it is right.

    Raises:
        UsageError: the pronoun is not where the row says.
    """
    label = label_id(row.get("label"), LABELS)
    if split == "train" and label != 1:
        return []
    return [{"inputs": PREFIX + _marked(row), "targets": row["span1_text"], "label": label, **numbers(row)}]


def _marked(row: Row) -> str:
    text, place, pronoun = row["text"], int(row["span2_index"]), row["span2_text"]
    for around, marked in MISPLACED.items():
        if around in text:
            return text.replace(around, marked).rstrip()
    words = text.split(" ")
    if not 0 < place < len(words) or words[place].lower() != pronoun.lower():
        raise UsageError(f"span2_text is {pronoun!r}, which is not word {place} of {text!r}")
    return " ".join([*words[:place], f"*{words[place]}*", *words[place + 1 :]])


def marked_spans(row: Row, split: str) -> list[Example]:
    """WSC with the noun between asterisks and the pronoun between number signs, to be answered True or False.

    Example:
        >>> row = {"text": "This is a test sentence .", "span1_text": "test", "span1_index": 3, "span2_text": "This",
        ...        "span2_index": 0, "label": 0}
        >>> marked_spans(row, "train")[0]["inputs"]
        'wsc text: # This # is a * test * sentence .'
    """
    first, second = int(row["span1_index"]), int(row["span2_index"])
    text = _mark(row["text"], row["span1_text"], first, "*")
    text = _mark(text, row["span2_text"], second + 2 * (first < second), "#")
    label = label_id(row.get("label"), LABELS)
    return [{"inputs": f"wsc text: {text}", "targets": UNKNOWN if label == NO_LABEL else LABELS[label], **numbers(row)}]


def _mark(text: str, span: str, place: int, sign: str) -> str:
    return re.sub(rf"^((?:\S+\s){{{place}}})({re.escape(span)})", rf"\1{sign} \2 {sign}", text)


def definite_pronoun(row: Row, split: str) -> list[Example]:
    """Rahman and Ng's pronouns, which T5 learns together with WSC: the first one is between asterisks.

    Example:
        >>> row = {"sentence": "Al met Bo if he came.", "pronoun": "he", "candidates": ["Al", "Bo"], "label": 1}
        >>> definite_pronoun(row, "train")
        [{'inputs': 'wsc: Al met Bo if *he* came.', 'targets': 'Bo'}]
    """
    pattern = rf" ({re.escape(row['pronoun'])})( |\.|,)"
    inputs = PREFIX + re.sub(pattern, r" *\1*\2", row["sentence"], count=1)
    return [{"inputs": inputs, "targets": row["candidates"][int(row["label"])]}]


def predicted_referent(text: str, *, example: Mapping[str, Any], is_target: bool = False, **_: Any) -> int:
    """1 if a prediction names the noun that a row asks about, 0 if another, -1 if none; of a target its label.

    Capital letters and determiners do not count, and one may be part of the other ("fuzzy bunny", "bunny"), unless
    only one of them has a possessive.
    """
    if is_target:
        return int(example["label"])
    predicted, wanted = _bare(text), _bare(example["targets_pretokenized"])
    if not predicted:
        return NO_LABEL
    if ("'" in predicted) != ("'" in wanted):
        return 0
    ours, theirs = set(predicted.split(" ")), set(wanted.split(" "))
    return int(ours <= theirs or theirs <= ours)


def _bare(text: str) -> str:
    return " ".join(word for word in text.strip().lower().split(" ") if word not in DETERMINERS)


def entailed_referent(row: Row, split: str) -> list[Example]:
    """WNLI as a question for the referent: of the premise's pronouns the one in whose place the hypothesis differs.

    Example:
        >>> row = {"sentence1": "The fish ate the worm. It was tasty.", "sentence2": "The worm was tasty.", "label": 0}
        >>> made = entailed_referent(row, "validation")[0]
        >>> made["inputs"], made["targets"]
        ('wsc: The fish ate the worm. *It* was tasty.', 'The worm')

    Raises:
        UsageError: the premise has no pronoun, or the hypothesis nothing in its place.
    """
    premise, hypothesis = row["sentence1"], row["sentence2"]
    words, wanted = _words(premise), _words(hypothesis)
    found = [_match(words, wanted, place) for place, word in enumerate(words) if word in PRONOUNS]
    if not found:
        raise UsageError(f"no pronoun is in {premise!r}")
    best = max(found, key=lambda match: match.score)
    label = label_id(row.get("label"), ("not_entailment", "entailment"))
    return [
        {
            "inputs": PREFIX + _highlighted(premise, best.place),
            "targets": _spelled(best.candidate, hypothesis),
            "label": label,
            **numbers(row),
        }
    ]


class _Match(NamedTuple):
    score: int  # words before and behind the pronoun that the hypothesis has too
    place: int
    candidate: str


def _words(text: str) -> list[str]:
    """Words in lower case without the mark at their end."""
    words = (re.sub(r"(\.|,|\?|\!)$", "", word) for word in text.strip().lower().split(" "))
    return [word for word in words if word]


def _shared(hypothesis: Sequence[str], words: Sequence[str]) -> int:
    """How many of the first words are in the hypothesis one after the other."""
    text = " ".join(hypothesis)
    return next((count for count in range(len(words)) if " ".join(words[: count + 1]) not in text), len(words))


def _match(premise: Sequence[str], hypothesis: Sequence[str], place: int) -> _Match:
    before, behind = list(premise[:place]), list(premise[place + 1 :])
    num_before = _shared(hypothesis[::-1], before[::-1])
    num_behind = _shared(hypothesis, behind)
    candidate = ""
    if num_before + num_behind:
        # T5 takes all words before the pronoun where none is shared, except at the beginning of a sentence.
        left = [re.escape(word) for word in before[-num_before or len(before) :]]
        right = [re.escape(word) for word in behind[:num_behind]]
        patterns = ([*left, "(.+)", *right], ["^(.+)", *right], [*left, "(.+)$"])
        found = filter(None, (re.search(" ".join(pattern), " ".join(hypothesis)) for pattern in patterns))
        first = next(found, None)
        candidate = first.group(1) if first else ""
    return _Match(num_before + num_behind, place, candidate)


def _highlighted(sentence: str, place: int) -> str:
    words = sentence.split(" ")
    word = words[place]
    marked = f"*{word[:-1]}* {word[-1]}" if word[-1:] in tuple(".,!?") and word else f"*{word}*"
    return " ".join([*words[:place], marked, *words[place + 1 :]])


def _spelled(candidate: str, hypothesis: str) -> str:
    """The candidate from its last article on, as the hypothesis spells it, without mark and possessive at its end."""
    words = candidate.split(" ")
    start = max((words.index(article) for article in ("a", "an", "the") if article in words), default=0)
    pattern = " ".join(rf"{re.escape(word)}(?:\.|,|\?|\!)?" for word in words[start:])
    found = re.search(f"({pattern})", hypothesis, re.IGNORECASE)
    if not candidate or found is None:
        raise UsageError(f"nothing in {hypothesis!r} stands for the pronoun")
    text = re.sub(r"[.,!?]$", "", found.group(1))
    return re.sub(r"('|'s)$", "", text)
