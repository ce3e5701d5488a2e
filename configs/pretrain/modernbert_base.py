"""ModernBERT-base on C4: 149 million parameters, masked language modelling at 30 per cent.

Reproduces: the first phase of ModernBERT's pretraining, rows of 1024 tokens and 1.7 trillion of them, on C4 (its two
    trillion tokens of web text and code are not published). The phases that extend rows to 8192 tokens follow from it.
Paper: Warner et al., "Smarter, Better, Faster, Longer: A Modern Bidirectional Encoder for Fast, Memory Efficient, and
    Long Context Finetuning and Inference", arXiv:2412.13663, section 2.2 and appendix A.
Differs: AdamW with clipped gradients in place of StableAdamW; the batch does not grow to its size; the rate
    falls as 1 - sqrt in the last tenth, which the paper does in its last phase.
Data: c4/en prepared by TFDS (tasks/c4_masked.py) and ModernBERT's tokenizer.json. All of C4 takes 650 GB of memory on
    each host, a hundredth 6.5 GB (tasks/c4.py).
Hardware and time: not run at full length yet; its step compiles for v6e:4x4 and fits
    (t2t plan pretrain/modernbert_base). 1.7 trillion tokens at 9e8 operations each are 1.5e21:
    four days on 16 chips at a third of their peak.
Expected: no published loss.
Command: t2t train pretrain/modernbert_base --vocabulary PATH
"""

from t2t import heads
from t2t.config import Checkpoint, Data, Evaluate, Experiment, Train
from t2t.families import modernbert
from t2t.objectives.masked import MaskedLanguageModeling
from t2t.train.optimizer import WSD, AdamW

STEPS, WARMUP = 360_000, 640
"""1.7 trillion and 3 billion tokens in batches of 4608 rows of 1024."""


def get_config() -> Experiment:
    """The paper's batch, rate and length of the first phase."""
    return Experiment(
        name="modernbert_base",
        model=modernbert.PRESETS["modernbert-base"](head=heads.MaskedLM()),
        vocabulary="vocabularies/modernbert",
        data=Data(
            modules=("tasks.c4", "tasks.c4_masked"),
            train="c4_mlm_30",
            lengths={"inputs": 1024, "targets": 1024, "predictions": 308},
            batch_size=4608,
        ),
        objective=MaskedLanguageModeling(),
        optimizer=AdamW(
            learning_rate=WSD(peak=8e-4, warmup_steps=WARMUP, decay_steps=STEPS // 10, decay="sqrt"),
            b2=0.98,
            eps=1e-6,
            weight_decay=1e-5,
            clip_norm=1.0,
        ),
        train=Train(steps=STEPS, log_every=100, micro_batches=36),
        evaluate=Evaluate(tasks=("c4_mlm_30",), every=10_000, max_examples=4096),
        checkpoint=Checkpoint(every=5_000, keep=3),
        topology="v6e:4x4",
    )
