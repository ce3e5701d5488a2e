"""Closed-book questions: the model answers from what it has learned, without a passage.

    natural_questions_closed_book   nq question: ...           87,925 / 3,610 questions with answers of a few words
    trivia_qa_closed_book           trivia_qa question: ...    87,622 / 11,313 / 10,832, the unfiltered set

    closed_book                     both, proportional to their examples

Metrics: exact match and F1, the best of all answers, normalised as SQuAD's and TriviaQA's scripts do it.

Registering needs no network; TFDS downloads the data when they are first read. Files for --data.files: the jsonl of
NQ-open ({"question", "answer": [...]}), the JSON of TriviaQA.

Reference: Roberts et al., "How Much Knowledge Can You Pack Into the Parameters of a Language Model?", arXiv:2002.08910,
and its code in google-research/google-research; Lee et al., arXiv:1906.00300 (NQ-open); Joshi et al., arXiv:1705.03551.
"""

from t2t.data import mixing, official_files, questions, registry, supervised
from t2t.train import answer_metrics, text_metrics

supervised.add(
    "natural_questions_closed_book",
    supervised.tfds("natural_questions_open:1.0.0", ("train", "validation")),
    supervised.Format(examples=questions.natural_question, extras={"answers": "texts"}),
    metric_fns=[text_metrics.squad],
    postprocess_fn=questions.all_answers,
    num_examples={"train": 87925, "validation": 3610},
    local={"train": "natural_questions/NQ-open.train.jsonl", "validation": "natural_questions/NQ-open.dev.jsonl"},
)

supervised.add(
    "trivia_qa_closed_book",
    supervised.tfds("trivia_qa/unfiltered.nocontext:1.1.0"),
    supervised.Format(
        examples=questions.trivia_question, extras={"answers": "texts", "id": "text"}, rows=official_files.trivia_qa
    ),
    metric_fns=[answer_metrics.trivia_qa],
    postprocess_fn=questions.all_answers,
    num_examples={"train": 87622, "validation": 11313, "test": 10832},
    local={
        "train": "trivia_qa/unfiltered-web-train.json",
        "validation": "trivia_qa/unfiltered-web-dev.json",
        "test": "trivia_qa/unfiltered-web-test-without-answers.json",
    },
)

registry.add_mixture(
    "closed_book",
    {name: mixing.ExampleCount() for name in ("natural_questions_closed_book", "trivia_qa_closed_book")},
)
