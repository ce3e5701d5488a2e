"""T5-11B on C4: 11 billion parameters, span corruption.

Reproduces: the pretraining of the largest T5 on its unsupervised objective alone, a million steps of 2^20 tokens (the
    paper mixes supervised tasks in).
Paper: Raffel et al., "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer",
    arXiv:1910.10683, sections 3.7 and 3.1.2.
Data: c4/en prepared by TFDS (tasks/c4.py) and T5's SentencePiece vocabulary.
    All of C4 takes 650 GB of memory on each host, a hundredth 6.5 GB (tasks/c4.py).
Hardware and time: not run at full length yet; its step compiles for v4:4x4x8 and fits (t2t plan pretrain/t5_11b).
    A trillion tokens of inputs at 6.6e10 operations each are 6.6e22: 65 days on 128 chips at a third of their peak.
Expected: no published loss.
Command: t2t train pretrain/t5_11b --vocabulary PATH
"""

import dataclasses

from configs.pretrain import t5_small
from t2t.config import Experiment, Mesh
from t2t.families import t5


def get_config() -> Experiment:
    """T5-small's run with the largest model and the batch and length of the final models."""
    base = t5_small.get_config()
    return dataclasses.replace(
        base,
        name="t5_11b",
        model=t5.PRESETS["t5-11b"](),
        data=dataclasses.replace(base.data, batch_size=2048),
        train=dataclasses.replace(base.train, steps=1_000_000, remat="full"),
        mesh=Mesh(fsdp=32, tensor=4),
        topology="v4:4x4x8",
    )
