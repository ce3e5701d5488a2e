"""T5 1.1 small on C4: 77 million parameters, gated GELU, an output layer of its own, no dropout.

Reproduces: the pretraining of T5 1.1 small, a million steps of 2048 rows.
Paper: Shazeer, "GLU Variants Improve Transformer", arXiv:2002.05202, and released_checkpoints.md of
    google-research/text-to-text-transfer-transformer; batch and steps of the public checkpoints.
Data: c4/en prepared by TFDS (tasks/c4.py) and T5's SentencePiece vocabulary.
    All of C4 takes 650 GB of memory on each host, a hundredth 6.5 GB (tasks/c4.py).
Hardware and time: not run at full length yet. A trillion tokens of inputs at 4.6e8 floating-point operations each are
    5e20: about three days on 64 TPU v4 chips at a tenth of their peak (a model this small does not fill them).
Expected: a validation loss of about 2 on span corruption, a little below T5-small's.
Command: t2t train pretrain/t5_v1_1_small --vocabulary PATH
"""

import dataclasses
from typing import Literal

from configs.pretrain import t5_small
from t2t.config import Experiment, Mesh
from t2t.families import t5


def get_config() -> Experiment:
    """T5-small's run with the model, the batch and the length of 1.1."""
    return of_size(size="small", topology="v5e:4x4", micro_batches=4)


def of_size(
    *,
    size: Literal["small", "base", "large", "xl", "xxl"],
    topology: str,
    micro_batches: int = 1,
    mesh: Mesh | None = None,
    remat: Literal["full", "dots_no_batch"] | None = None,
) -> Experiment:
    """The run of any size: they differ in the model, and in how it is laid out on its chips."""
    base = t5_small.get_config()
    return dataclasses.replace(
        base,
        name=f"t5_v1_1_{size}",
        model=t5.PRESETS[f"t5-v1_1-{size}"](),
        data=dataclasses.replace(base.data, batch_size=2048),
        train=dataclasses.replace(base.train, steps=1_000_000, micro_batches=micro_batches, remat=remat),
        mesh=Mesh() if mesh is None else mesh,
        topology=topology,
    )
