"""XLNet-base on Wikipedia: 117 million parameters, permutation language modelling with a memory, in both directions.

Reproduces: the 12-layer XLNet of the paper's ablations (section 3.6: sizes and data of BERT-base), on Wikipedia alone
    (BooksCorpus is no longer public). Windows of 512 tokens overlap by half; of each, 85 tokens are predicted, and the
    256 of its first half are remembered for the next, up to 384. Half of the rows read the text backwards.
Paper: Yang et al., "XLNet: Generalized Autoregressive Pretraining for Language Understanding", arXiv:1906.08237,
    section 2 and table 8; lengths of windows and memory as in zihangdai/xlnet; batch, steps and rate, which the paper
    states for XLNet-large alone (8192 rows, 500 thousand steps, 4e-4), are those of BERT-base.
Data: wikipedia/20230601.en of TFDS (tasks/wikipedia.py) and XLNet's spiece.model.
Hardware and time: not run at full length yet. A step is dearer than BERT-base's: 85 queries run along with 512 tokens,
    896 positions are read, and every score compares a distance too.
Expected: the paper gives no loss. Fine-tuned, its model (table 6, XLNet-Base with K = 6, BooksCorpus included) has
    SQuAD 2.0 F1 81.0, MNLI 85.6 and RACE 66.7 per cent, against 76.3, 84.3 and 64.3 of BERT-base.
Command: t2t train pretrain/xlnet_base --vocabulary PATH
"""

import dataclasses

from t2t import heads
from t2t.config import Checkpoint, Data, Evaluate, Experiment, Train
from t2t.families import xlnet
from t2t.models.two_stream import TwoStreamEncoderConfig
from t2t.objectives.permutation import PermutationLanguageModeling
from t2t.train.optimizer import AdamW, Linear

LENGTH = 512
REUSE = LENGTH // 2
"""Tokens of a window that the next one has for its memory; the windows of the tasks overlap by half."""


def get_model() -> TwoStreamEncoderConfig:
    """XLNet-base as it was pretrained: with a memory, for text in both directions."""
    preset = xlnet.PRESETS["xlnet-base-cased"](head=heads.PRETRAINING)
    return dataclasses.replace(preset, memory_length=384, memory_reuse=REUSE, bidirectional=True)


def get_config() -> Experiment:
    """Batches of 256 windows for a million steps, as BERT-base's."""
    return Experiment(
        name="xlnet_base",
        model=get_model(),
        vocabulary="vocabularies/xlnet-base-cased",
        data=Data(
            modules=("tasks.wikipedia",),
            train="wikipedia_permutation_lm_bidirectional",
            lengths={"inputs": LENGTH, "targets": LENGTH, "predictions": 85},
            batch_size=256,
        ),
        objective=PermutationLanguageModeling(),
        optimizer=AdamW(
            learning_rate=Linear(peak=1e-4, warmup_steps=10_000),
            eps=1e-6,
            bias_correction=False,
            weight_decay=0.01,
            clip_norm=1.0,
        ),
        train=Train(steps=1_000_000, log_every=100, micro_batches=2),
        evaluate=Evaluate(tasks=("wikipedia_permutation_lm_forward",), every=10_000, max_examples=4096),
        checkpoint=Checkpoint(every=5_000, keep=3),
        topology="v5e:4x4",
    )
