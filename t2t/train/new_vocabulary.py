"""The vocabulary of a run that brings none: trained on the run's own text before its first step."""

import itertools
import logging
from collections.abc import Iterator

from t2t.config import Experiment
from t2t.data import mixtures, texts, ul2
from t2t.errors import UsageError
from t2t.train import tasks
from t2t.vocabulary import SentencePieceVocabulary, train_sentencepiece

log = logging.getLogger(__name__)

MAX_LINES = 2_000_000
"""Lines of the text that the vocabulary is trained on, from the first."""


def train_vocabulary(experiment: Experiment) -> SentencePieceVocabulary:
    """A SentencePiece vocabulary of `vocabulary_size` ids; the same text gives the same one.

    It has `vocabulary_sentinels` sentinels, a mask, and mode tokens if a task that the run learns begins with them.

    Raises:
        UsageError: the size does not suit the text; says which would.
    """
    tasks.register(experiment)
    log.info("training a vocabulary of %s ids on the text of the run", f"{experiment.vocabulary_size:,}")
    try:
        return train_sentencepiece(
            _lines(experiment),
            size=experiment.vocabulary_size,
            sentinels=experiment.vocabulary_sentinels,
            modes=_asks_for_modes(experiment),
        )
    except ValueError as error:
        raise UsageError(f"vocabulary_size: {error}") from error


def _asks_for_modes(experiment: Experiment) -> bool:
    steps = (step for task in mixtures.leaf_tasks(tasks.to_train(experiment)) for step in task.preprocessors)
    return any(isinstance(step, ul2.Denoiser) and step.mode_as == "token" for step in steps)


def _lines(experiment: Experiment) -> Iterator[str]:
    lines = (line for text in texts.raw_texts(tasks.to_train(experiment)) for line in text.splitlines())
    return itertools.islice((line for line in lines if line.strip()), MAX_LINES)
