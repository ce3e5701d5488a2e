"""ModernBERT-large on C4: 395 million parameters, masked language modelling at 30 per cent.

Reproduces: the first phase of ModernBERT's pretraining, rows of 1024 tokens and 0.9 trillion of them, on C4 (its two
    trillion tokens of web text and code are not published). The phases that extend rows to 8192 tokens follow from it.
Paper: Warner et al., "Smarter, Better, Faster, Longer: A Modern Bidirectional Encoder for Fast, Memory Efficient, and
    Long Context Finetuning and Inference", arXiv:2412.13663, section 2.2 and appendix A.
Differs: AdamW with clipped gradients in place of StableAdamW; the batch does not grow to its size; after 0.9
    trillion tokens the authors went on with a tenth of the rate, here it falls as 1 - sqrt.
Data: c4/en prepared by TFDS (tasks/c4_masked.py) and ModernBERT's tokenizer.json. All of C4 takes 650 GB of memory on
    each host, a hundredth 6.5 GB (tasks/c4.py).
Hardware and time: not run at full length yet; its step compiles for v6e:8x8 and fits
    (t2t plan pretrain/modernbert_large). 0.9 trillion tokens at 2.4e9 operations each are 2.1e21:
    a day and a half on 64 chips at a third of their peak.
Expected: no published loss.
Command: t2t train pretrain/modernbert_large --vocabulary PATH
"""

import dataclasses

from configs.pretrain import modernbert_base
from t2t import heads
from t2t.config import Experiment
from t2t.families import modernbert
from t2t.train.optimizer import WSD

STEPS, WARMUP = 178_000, 400
"""0.9 trillion and 2 billion tokens in batches of 4928 rows of 1024."""


def get_config() -> Experiment:
    """ModernBERT-base's run with the larger model, its batch and rate."""
    base = modernbert_base.get_config()
    rate = WSD(peak=5e-4, warmup_steps=WARMUP, decay_steps=STEPS // 10, decay="sqrt")
    return dataclasses.replace(
        base,
        name="modernbert_large",
        model=modernbert.PRESETS["modernbert-large"](head=heads.MaskedLM()),
        data=dataclasses.replace(base.data, batch_size=4928),
        optimizer=dataclasses.replace(base.optimizer, learning_rate=rate),
        train=dataclasses.replace(base.train, steps=STEPS, micro_batches=11, remat="dots_no_batch"),
        topology="v6e:8x8",
    )
