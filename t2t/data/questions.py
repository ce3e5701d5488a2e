r"""Questions as text-to-text: SQuAD with its passage, and closed-book questions, whose answers the model must know.

    question: Where did Jebe die ? context: Genghis Khan recalled Subutai ...     ->     on the road back to Samarkand
    nq question: who played the guitar on that record                             ->     a name

Reference: Raffel et al., arXiv:1910.10683, appendix D.15; Roberts et al., "How Much Knowledge Can You Pack Into the
Parameters of a Language Model?", arXiv:2002.08910, section 3; Xue et al., "mT5", arXiv:2010.11934, section 4.1 (XQuAD).
"""

import functools
import re
import string
import unicodedata
from typing import Any

from t2t.data.labelled_texts import UNKNOWN
from t2t.data.official_files import Example, Row

UNANSWERABLE = "unanswerable"
"""The target of questions of SQuAD 2.0 that the passage does not answer."""

_PUNCTUATION = re.compile(f"([{re.escape(string.punctuation)}])")
_SPACES = re.compile(r"[\t\n\f\r ]+")  # spaces of T5's regular expressions, which do not know those of Unicode


def pad_punctuation(text: str) -> str:
    """Spaces around each sign of ASCII punctuation, and one for every run of spaces, as T5 writes SQuAD.

    Example:
        >>> pad_punctuation('"Introducción  (la vídeo)".')
        ' " Introducción ( la vídeo ) " . '
    """
    return _SPACES.sub(" ", _PUNCTUATION.sub(r" \1 ", text))


def pad_signs(text: str) -> str:
    """Spaces around everything but letters, digits, marks and underscores of any script, as mT5 writes XQuAD.

    Example:
        >>> pad_signs("François, ¿qué?")
        'François , ¿ qué ? '
    """
    return _SPACES.sub(" ", "".join(one if _is_of_word(one) else f" {one} " for one in text))


@functools.cache
def _is_of_word(sign: str) -> bool:
    return sign in "_ \t\n\f\r" or unicodedata.category(sign)[0] in "LMN"


def passage_question(row: Row, split: str, *, pad: Any = pad_punctuation, context: bool = True) -> list[Example]:
    """SQuAD: the first answer of a question about a passage; of questions without an answer `UNANSWERABLE`.

    Args:
        row: question, context, answers {"text": [...]} and id.
        split: of the row.
        pad: how punctuation is set apart.
        context: whether the passage is shown; without it this is a closed-book question.

    Example:
        >>> row = {"id": "1", "question": "A question?", "context": "Some context.", "answers": {"text": ["It."]}}
        >>> passage_question(row, "train")[0]["inputs"]
        'question: A question ? context: Some context . '
    """
    answers = [pad(answer) for answer in row["answers"]["text"]]
    question = pad(row["question"])
    parts = (
        ["question:", question, "context:", pad(row["context"])] if context else ["squad trivia question:", question]
    )
    return [
        {
            "inputs": _SPACES.sub(" ", " ".join(parts)),
            "targets": answers[0] if answers else UNANSWERABLE,
            "answers": answers,
            "id": str(row["id"]),
        }
    ]


def natural_question(row: Row, split: str) -> list[Example]:
    """Natural Questions without passages: the first answer.

    Example:
        >>> natural_question({"question": "who sang it", "answer": ["Bob", "Al"]}, "train")
        [{'inputs': 'nq question: who sang it', 'targets': 'Bob', 'answers': ['Bob', 'Al']}]
    """
    answers = row["answer"] if isinstance(row["answer"], list) else [row["answer"]]
    return [
        {"inputs": f"nq question: {row['question']}", "targets": (answers or [UNKNOWN])[0], "answers": list(answers)}
    ]


def trivia_question(row: Row, split: str) -> list[Example]:
    """TriviaQA without passages: the answer, of which evaluation knows the aliases too."""
    answer = row["answer"]
    return [
        {
            "inputs": f"trivia_qa question: {row['question']}",
            "targets": answer["value"],
            "answers": list(answer["aliases"]),
            "id": str(row.get("question_id", "")),
        }
    ]


def all_answers(text: str, *, example: Row, is_target: bool = False, **_: Any) -> Any:
    """All right answers of a target; a prediction as it is. A `postprocess_fn`."""
    return list(example["answers"]) if is_target else text
