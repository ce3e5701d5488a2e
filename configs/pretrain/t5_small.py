"""T5-small on C4: 60 million parameters, span corruption.

Reproduces: the pretraining of T5-small, its baseline of 2^19 steps (half a million) of 128 rows of 512 tokens.
Paper: Raffel et al., "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer",
    arXiv:1910.10683, sections 3.1.2 and 3.1.4; Adafactor and its schedule as in T5X's t5_1_0 pretraining.
Data: c4/en prepared by TFDS (tasks/c4.py); a vocabulary: T5's own SentencePiece model, or t2t vocab train --size 32100.
    All of C4 takes 650 GB of memory on each host, a hundredth 6.5 GB (tasks/c4.py).
Hardware and time: not run at full length yet. 34 billion tokens of inputs at 3.6e8 floating-point operations each are
    1.2e19: about a day on 8 TPU v3 cores at a third of their peak.
Expected: a validation loss of about 2 on span corruption.
Command: t2t train pretrain/t5_small --vocabulary PATH
"""

from t2t.config import Checkpoint, Data, Evaluate, Experiment, Train
from t2t.families import t5
from t2t.objectives.language_modeling import LanguageModeling
from t2t.train.optimizer import Adafactor, InverseSquareRoot

STEPS = 2**19


def get_config() -> Experiment:
    """T5's baseline objective and batch on its small size."""
    return Experiment(
        name="t5_small",
        model=t5.PRESETS["t5-small"](),
        vocabulary="vocabularies/t5",
        data=Data(
            modules=("tasks.c4",),
            train="c4_span_corruption",
            lengths={"inputs": 512, "targets": 114},
            batch_size=128,
        ),
        objective=LanguageModeling(z_loss=1e-4),
        optimizer=Adafactor(learning_rate=InverseSquareRoot()),
        train=Train(steps=STEPS, log_every=100),
        evaluate=Evaluate(tasks=("c4_span_corruption",), every=10_000, max_examples=4096),
        checkpoint=Checkpoint(every=5_000, keep=3),
        topology="v5e:2x2",
    )
