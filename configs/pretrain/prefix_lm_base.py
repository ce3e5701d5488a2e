"""A prefix language model of T5's shape on C4: 110 million parameters, a prefix read in both directions.

Reproduces: the prefix LM of T5's comparison of architectures, with the objective of the same name: one stack of the
    size of T5-base's decoder, half the parameters of the encoder-decoder, 2^19 steps of 128 rows of 512 tokens. Prefix
    and continuation together fill 512 tokens.
Paper: Raffel et al., "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer",
    arXiv:1910.10683, sections 3.1.2, 3.2.1 to 3.2.3 and table 2; Liu et al., "Generating Wikipedia by Summarizing Long
    Sequences", arXiv:1801.10198, for a decoder on inputs and targets; UniLM (Dong et al., arXiv:1905.03197) mixes this
    with other masks.
Data: c4/en prepared by TFDS (tasks/c4.py) and T5's SentencePiece vocabulary.
    All of C4 takes 650 GB of memory on each host, a hundredth 6.5 GB (tasks/c4.py).
Hardware and time: not run at full length yet. 34 billion tokens at 6.6e8 floating-point operations each are 2.3e19:
    some 40 hours on 8 TPU v3 cores at a third of their peak.
Expected: the paper gives scores of the fine-tuned model alone (table 2, prefix LM with the LM objective: GLUE 79.68,
    SQuAD 76.87, SuperGLUE 64.86).
Command: t2t train pretrain/prefix_lm_base --vocabulary PATH
"""

import dataclasses

from t2t.config import Checkpoint, Data, Evaluate, Experiment, Train
from t2t.families import t5
from t2t.models.decoder import DecoderConfig
from t2t.nn.positions.t5_bias import T5Bias
from t2t.objectives.language_modeling import LanguageModeling
from t2t.train.optimizer import Adafactor, InverseSquareRoot

STEPS = 2**19


def get_model() -> DecoderConfig:
    """T5-base's decoder without its cross-attention, over the whole text.

    Every position that may be read to the right of the reader, inside the prefix, has the first bucket of the bias, as
    in T5's own prefix LM.
    """
    base = t5.PRESETS["t5-base"]()
    return DecoderConfig(
        embed=base.embed,
        stack=dataclasses.replace(base.encoder, position=T5Bias(num_buckets=32, max_distance=128, bidirectional=False)),
        head=base.head,
        prefix_attention=True,
    )


def get_config() -> Experiment:
    """T5's baseline batch and schedule on one stack."""
    return Experiment(
        name="prefix_lm_base",
        model=get_model(),
        vocabulary="vocabularies/t5",
        data=Data(
            modules=("tasks.c4",),
            train="c4_prefix_lm",
            lengths={"inputs": 256, "targets": 256},
            batch_size=128,
        ),
        objective=LanguageModeling(z_loss=1e-4),
        optimizer=Adafactor(learning_rate=InverseSquareRoot()),
        train=Train(steps=STEPS, log_every=100),
        evaluate=Evaluate(tasks=("c4_prefix_lm",), every=10_000, max_examples=4096),
        checkpoint=Checkpoint(every=5_000, keep=3),
        topology="v5e:4x4",
    )
