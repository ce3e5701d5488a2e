"""UL2 20B on C4: 20 billion parameters, a mixture of seven denoisers under three modes.

Reproduces: the pretraining of UL2 20B, two million steps of 1024 rows of 512 inputs and 512 targets, on the published
    mixture of its denoisers.
Paper: Tay et al., "UL2: Unifying Language Learning Paradigms", arXiv:2205.05131, sections 3.1 and 5.1.
Data: as pretrain/ul2_base, whose docstring says why the vocabulary has 32,384 ids and 300 sentinels.
Hardware and time: not run at full length yet; its step compiles for v4:8x8x8, the 512 chips that the paper names, and
    fits (t2t plan pretrain/ul2_20b). A trillion tokens of inputs at some 1.2e11 operations each are 1.2e23: a month at
    a third of their peak.
Expected: no reference; losses differ between denoisers, and each is reported under the name of its task.
Command: t2t train pretrain/ul2_20b
"""

import dataclasses

from configs.pretrain import ul2_base
from t2t.config import Experiment, Mesh
from t2t.families import t5


def get_config() -> Experiment:
    """The run of UL2 at base size with the published model and batch."""
    base = ul2_base.get_config()
    model = t5.PRESETS["ul2-20b"]()
    return dataclasses.replace(
        base,
        name="ul2_20b",
        model=dataclasses.replace(model, embed=dataclasses.replace(model.embed, vocab_size=ul2_base.VOCABULARY_SIZE)),
        data=dataclasses.replace(base.data, train="c4_ul2_40_40_20", batch_size=1024),
        train=dataclasses.replace(base.train, steps=2_000_000, remat="dots_no_batch"),
        mesh=Mesh(fsdp=64),
        topology="v4:8x8x8",
    )
