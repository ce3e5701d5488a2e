"""mT5-XXL on mC4: 13 billion parameters, span corruption in 107 languages and scripts.

Reproduces: the pretraining of mT5-XXL, a million steps of 1024 rows of 1024 tokens, languages with exponent 0.3.
Paper: Xue et al., "mT5: A massively multilingual pre-trained text-to-text transformer", arXiv:2010.11934, section 3;
    Adafactor and its schedule as T5's.
Data: c4/multilingual prepared by TFDS (tasks/mc4.py), read from a token cache (t2t cache), and mT5's SentencePiece
    vocabulary.
Hardware and time: not run at full length yet; its step compiles for v5p:4x4x8 and fits (t2t plan pretrain/mt5_xxl).
    A trillion tokens of inputs at 6.7e10 operations each are 6.7e22: 40 days on 128 chips at a third of their peak.
Expected: no published loss.
Command: t2t train pretrain/mt5_xxl --vocabulary PATH
"""

import dataclasses

from configs.pretrain import t5_small
from t2t.config import Data, Evaluate, Experiment, Mesh
from t2t.families import mt5


def get_config() -> Experiment:
    """T5's optimizer on the paper's model, batch and mixture."""
    base = t5_small.get_config()
    return dataclasses.replace(
        base,
        name="mt5_xxl",
        model=mt5.PRESETS["mt5-xxl"](),
        vocabulary="vocabularies/mt5",
        data=Data(
            modules=("tasks.mc4",),
            train="mc4_span_corruption",
            lengths={"inputs": 1024, "targets": 229},
            batch_size=1024,
        ),
        train=dataclasses.replace(base.train, steps=1_000_000, remat="dots_no_batch"),
        evaluate=Evaluate(
            tasks=tuple(f"mc4_{language}_span_corruption" for language in ("en", "de", "hi", "sw", "zh")),
            every=10_000,
            max_examples=1024,
        ),
        mesh=Mesh(fsdp=128),
        topology="v5p:4x4x8",
    )
