"""Rows of public benchmarks as TFDS has them, and the examples that T5's paper or its tests print of them."""

T5 = "the examples printed in appendix D of arXiv:1910.10683"

GENGHIS = "Genghis Khan recalled Subutai back to Mongolia soon afterwards, and Jebe died on the road back to Samarkand."
ITALIANS = (
    "A smaller proportion of Yugoslavia's Italians were settled in Slovenia (at the 1991 national census, some 3000 "
    "inhabitants of Slovenia declared themselves as ethnic Italians)."
)
RUMSFELD = (
    "We acted because we saw the existing evidence in a new light , through the prism of our experience on "
    '11 September , " Rumsfeld said .'
)
SEPTEMBER = (
    'Rather , the US acted because the administration saw " existing evidence in a new light , through the prism of '
    'our experience on September 11 " .'
)
FINCHER = (
    "it confirms fincher 's status as a film maker who artfully bends technical know-how to the service of "
    "psychological insight . "
)
CARDINALS = (
    "yeah well losing is i mean i'm i'm originally from Saint Louis and Saint Louis Cardinals when they were there "
    "were uh a mostly a losing team but"
)
VALENCE = (
    "Valence the void-brain, Valence the virtuous valet. Why couldn't the figger choose his own portion of titanic "
    "anatomy to shaft? Did he think he was helping?"
)
JOEY = "Once upon a time, there was a squirrel named Joey."
STABLE = (
    "The stable was very roomy, with four good stalls; a large swinging window opened into the yard , which made it "
    "pleasant and airy."
)
SPITZER = (
    'This image section from an infrared recording by the Spitzer telescope shows a "family portrait" of countless '
    "generations of stars: the oldest stars are seen as blue dots, while more difficult to identify are the "
    'pink-coloured "new-borns" in the star delivery room.'
)

# Task: row, inputs, targets.
PRINTED = {
    "glue_cola": (
        {"sentence": "John made Bill master of himself.", "label": 1, "idx": 0},
        "cola sentence: John made Bill master of himself.",
        "acceptable",
    ),
    "glue_rte": (
        {"sentence1": ITALIANS, "sentence2": "Slovenia has 3,000 inhabitants.", "label": 1, "idx": 0},
        f"rte sentence1: {ITALIANS} sentence2: Slovenia has 3,000 inhabitants.",
        "not_entailment",
    ),
    "glue_mnli": (
        {"premise": CARDINALS, "hypothesis": "The St. Louis Cardinals have always won.", "label": 2, "idx": 0},
        f"mnli hypothesis: The St. Louis Cardinals have always won. premise: {CARDINALS}",
        "contradiction",
    ),
    "glue_mrpc": (
        {"sentence1": RUMSFELD, "sentence2": SEPTEMBER, "label": 1, "idx": 0},
        f"mrpc sentence1: {RUMSFELD} sentence2: {SEPTEMBER}",
        "equivalent",
    ),
    "glue_qnli": (
        {"question": "Where did Jebe die?", "sentence": GENGHIS, "label": 0, "idx": 0},
        f"qnli question: Where did Jebe die? sentence: {GENGHIS}",
        "entailment",
    ),
    "glue_qqp": (
        {
            "question1": "What attributes would have made you highly desirable in ancient Rome?",
            "question2": "How I GET OPPERTINUTY TO JOIN IT COMPANY AS A FRESHER?",
            "label": 0,
            "idx": 0,
        },
        "qqp question1: What attributes would have made you highly desirable in ancient Rome? question2: How I GET "
        "OPPERTINUTY TO JOIN IT COMPANY AS A FRESHER?",
        "not_duplicate",
    ),
    "glue_sst2": ({"sentence": FINCHER, "label": 1, "idx": 0}, f"sst2 sentence: {FINCHER}", "positive"),
    "glue_stsb": (
        {
            "sentence1": "Representatives for Puretunes could not immediately be reached for comment Wednesday.",
            "sentence2": "Puretunes representatives could not be located Thursday to comment on the suit.",
            "label": 3.25,
            "idx": 0,
        },
        "stsb sentence1: Representatives for Puretunes could not immediately be reached for comment Wednesday. "
        "sentence2: Puretunes representatives could not be located Thursday to comment on the suit.",
        "3.2",
    ),
    "super_glue_cb": (
        {"premise": VALENCE, "hypothesis": "Valence was helping", "label": 1, "idx": 0},
        f"cb hypothesis: Valence was helping premise: {VALENCE}",
        "contradiction",
    ),
    "super_glue_copa": (
        {
            "premise": "Political violence broke out in the nation.",
            "choice1": "Many citizens relocated to the capitol.",
            "choice2": "Many citizens took refuge in other territories.",
            "question": "effect",
            "label": 1,
            "idx": 0,
        },
        "copa choice1: Many citizens relocated to the capitol. choice2: Many citizens took refuge in other "
        "territories. premise: Political violence broke out in the nation. question: effect",
        "choice2",
    ),
    "super_glue_multirc": (
        {
            "paragraph": f"<b>Sent 1: </b>{JOEY}<br><b>Sent 2: </b>Joey loved to go outside.<br>",
            "question": "Why was Joey surprised the morning he woke up for breakfast?",
            "answer": "There was only pie to eat, rather than traditional breakfast foods",
            "label": 1,
            "idx": {"paragraph": 5, "question": 1, "answer": 3},
        },
        "multirc question: Why was Joey surprised the morning he woke up for breakfast? answer: There was only pie to "
        f"eat, rather than traditional breakfast foods paragraph: Sent 1: {JOEY} Sent 2: Joey loved to go outside. ",
        "True",
    ),
    "super_glue_wsc": (
        {
            "text": STABLE,
            "span1_text": "stable",
            "span1_index": 1,
            "span2_text": "it",
            "span2_index": 20,
            "label": 1,
            "idx": 0,
        },
        "wsc: The stable was very roomy, with four good stalls; a large swinging window opened into the yard , "
        "which made *it* pleasant and airy.",
        "stable",
    ),
    "wmt_t2t_ende": (
        {
            "en": '"Luigi often said to me that he never wanted the brothers to end up in court," she wrote.',
            "de": '"Luigi sagte oft zu mir, dass er nie wollte, dass die Brüder vor Gericht landen", schrieb sie.',
        },
        'translate English to German: "Luigi often said to me that he never wanted the brothers to end up in court," '
        "she wrote.",
        '"Luigi sagte oft zu mir, dass er nie wollte, dass die Brüder vor Gericht landen", schrieb sie.',
    ),
    "wmt15_enfr": (
        {"en": SPITZER, "fr": "Ce détail d'une photographie infrarouge"},
        f"translate English to French: {SPITZER}",
        "Ce détail d'une photographie infrarouge",
    ),
    "wmt16_enro": (
        {
            "en": "Taco Bell said it plans to add 2,000 locations in the US by 2022.",
            "ro": "Taco Bell a afirmat că, până în 2022, intenționează să deschidă 2000 de restaurante în SUA.",
        },
        "translate English to Romanian: Taco Bell said it plans to add 2,000 locations in the US by 2022.",
        "Taco Bell a afirmat că, până în 2022, intenționează să deschidă 2000 de restaurante în SUA.",
    ),
    "cnn_dailymail": (
        {
            "article": "marouane fellaini and adnan januzaj continue to show the world",
            "highlights": "the belgian duo .",
            "id": "1",
        },
        "summarize: marouane fellaini and adnan januzaj continue to show the world",
        "the belgian duo .",
    ),
}
"""Of the paper's appendix."""

ENTITIES = ["A", "B", "C"]
HIGHLIGHTS = "This is the passage\n@highlight\nAnother sentence.\n@highlight\nThird sentence."

OTHERS = {
    "glue_wnli": (
        {"sentence1": "It was tasty.", "sentence2": "The worm was tasty.", "label": 1, "idx": 3},
        "wnli sentence1: It was tasty. sentence2: The worm was tasty.",
        "entailment",
    ),
    "glue_wnli_simple": (
        {
            "sentence1": "Lily spoke to Donna breaking her silence.",
            "sentence2": "Lily spoke to Donna breaking Donna's silence.",
            "label": 1,
            "idx": 1,
        },
        "wsc: Lily spoke to Donna breaking *her* silence.",
        "Donna",
    ),
    "glue_mnli_mismatched": (
        {"premise": "A.", "hypothesis": "B.", "label": 1, "idx": 1},
        "mnli hypothesis: B. premise: A.",
        "neutral",
    ),
    "glue_ax": (
        {"premise": "A.", "hypothesis": "B.", "label": -1, "idx": 1},
        "mnli hypothesis: B. premise: A.",
        "<unk>",
    ),
    "super_glue_boolq": (
        {"question": "is it so", "passage": "It is.", "label": 1, "idx": 2},
        "boolq passage: It is. question: is it so",
        "True",
    ),
    "super_glue_rte": (
        {"premise": "A.", "hypothesis": "B.", "label": 0, "idx": 1},
        "rte hypothesis: B. premise: A.",
        "entailment",
    ),
    "super_glue_wic": (
        {
            "word": "deliberation",
            "sentence1": "One .",
            "sentence2": "Two .",
            "start1": 0,
            "end1": 2,
            "start2": 1,
            "end2": 3,
            "label": 0,
            "idx": 1,
        },
        "wic sentence1: One . sentence2: Two . word: deliberation",
        "False",
    ),
    "super_glue_record": (
        {
            "query": "It was @placeholder.",
            "entities": ENTITIES,
            "passage": HIGHLIGHTS,
            "answers": ["A", "C"],
            "idx": {"passage": 1, "query": 2},
        },
        "record query: It was @placeholder. entities: A, B, C passage: This is the passage. Another sentence. "
        "Third sentence.",
        "A",
    ),
    "super_glue_wsc_marked": (
        {
            "text": "This is a test sentence .",
            "span1_text": "test",
            "span1_index": 3,
            "span2_text": "This",
            "span2_index": 0,
            "label": 0,
            "idx": 0,
        },
        "wsc text: # This # is a * test * sentence .",
        "False",
    ),
    "super_glue_axb": (
        {"sentence1": "A.", "sentence2": "B.", "label": 1, "idx": 1},
        "rte hypothesis: B. premise: A.",
        "not_entailment",
    ),
    "super_glue_axg": (
        {"premise": "A.", "hypothesis": "B.", "label": 1, "idx": 1},
        "rte hypothesis: B. premise: A.",
        "not_entailment",
    ),
    "dpr": (
        {
            "sentence": "Mitchell asked Tom if he could lend some money.",
            "pronoun": "he",
            "candidates": ["Mitchell", "Tom"],
            "label": 1,
        },
        "wsc: Mitchell asked Tom if *he* could lend some money.",
        "Tom",
    ),
    "squad": (
        {
            "id": "testid",
            "title": "",
            "context": "Some context.",
            "question": "A question?",
            "answers": {"text": ["The answer.", "Another answer."], "answer_start": [0, 1]},
        },
        "question: A question ? context: Some context . ",
        "The answer . ",
    ),
    "squad_v2": (
        {
            "id": "testid",
            "title": "",
            "context": "Some context.",
            "question": "A question?",
            "is_impossible": True,
            "plausible_answers": {"text": ["it"], "answer_start": [0]},
            "answers": {"text": [], "answer_start": []},
        },
        "question: A question ? context: Some context . ",
        "unanswerable",
    ),
    "xquad_zh": (
        {
            "id": "1",
            "title": "",
            "context": "你好。",
            "question": "吗？",
            "answers": {"text": ["你好"], "answer_start": [0]},
        },
        "question: 吗 ？ context: 你好 。 ",
        "你好",
    ),
    "xsum": ({"document": "An article.", "summary": "A summary."}, "summarize: An article.", "A summary."),
    "wmt14_deen": ({"en": "Yes, it is.", "de": "Ja."}, "translate German to English: Ja.", "Yes, it is."),
    "natural_questions_closed_book": (
        {"question": "who sang it", "answer": ["Bob", "Al"]},
        "nq question: who sang it",
        "Bob",
    ),
    "trivia_qa_closed_book": (
        {
            "question": "Who?",
            "question_id": "tc_1",
            "question_source": "",
            "answer": {"value": "Bob", "aliases": ["Bob", "Bobby"], "normalized_aliases": ["bob", "bobby"]},
        },
        "trivia_qa question: Who?",
        "Bob",
    ),
    "xnli_train": (
        {"premise": "A.", "hypothesis": "B.", "label": 2, "idx": 4},
        "xnli: premise: A. hypothesis: B.",
        "2",
    ),
    "xnli_de": (
        {
            "premise": {"de": "Es regnet.", "en": "It rains."},
            "hypothesis": {"language": ["de", "en"], "translation": ["Nass.", "Wet."]},
            "label": 0,
        },
        "xnli: premise: Es regnet. hypothesis: Nass.",
        "0",
    ),
    "conll2003_ner": (
        {
            "tokens": ["EU", "rejects", "German", "call"],
            "pos": [1, 2, 3, 4],
            "chunks": [1, 2, 3, 4],
            "ner": [3, 0, 7, 0],
        },
        "ner: EU rejects German call",
        "B-ORG O B-MISC O",
    ),
    "ud_en_ewt": (
        {"idx": "1", "tokens": ["What", "if", "Google"], "upos": [10, 13, 11]},
        "pos: What if Google",
        "PRON SCONJ PROPN",
    ),
    "imdb": ({"text": "A fine film.", "label": 1}, "imdb text: A fine film.", "positive"),
    "ag_news": (
        {"title": "Oil", "description": "It rose.", "label": 2},
        "ag_news title: Oil description: It rose.",
        "Business",
    ),
}
"""Of the reference implementation's own tests, or in its form."""

CASES = {**PRINTED, **OTHERS}
