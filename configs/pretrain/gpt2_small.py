"""GPT-2 small on C4: 124 million parameters, causal language modelling.

Reproduces: the smallest GPT-2, on C4 in place of WebText, which was never released; rows of 1024 tokens, 512 a batch.
Paper: Radford et al., "Language Models are Unsupervised Multitask Learners", 2019, section 2; optimizer and schedule,
    which it does not state, as GPT-3's 125M (Brown et al., arXiv:2005.14165, table 2.1 and appendix B).
Data: c4/en prepared by TFDS (tasks/c4.py) and GPT-2's vocab.json with merges.txt.
    All of C4 takes 650 GB of memory on each host, a hundredth 6.5 GB (tasks/c4.py).
Hardware and time: not run at full length yet. 300 billion tokens at 8.5e8 floating-point operations each are 2.6e20:
    about four days on 8 A100 GPUs at 30 % of their peak.
Expected: a validation loss near 3 on held-out C4.
Command: t2t train pretrain/gpt2_small --vocabulary PATH
"""

from t2t.config import Checkpoint, Data, Evaluate, Experiment, Train
from t2t.families import gpt2
from t2t.objectives.language_modeling import LanguageModeling
from t2t.train.optimizer import AdamW, Cosine


def get_config() -> Experiment:
    """Half a million tokens a batch for 300 billion tokens."""
    return Experiment(
        name="gpt2_small",
        model=gpt2.PRESETS["gpt2"](),
        vocabulary="vocabularies/gpt2",
        data=Data(modules=("tasks.c4",), train="c4_causal_lm", lengths={"targets": 1024}, batch_size=512),
        objective=LanguageModeling(logits_chunk=128),
        optimizer=AdamW(
            learning_rate=Cosine(peak=6e-4, warmup_steps=700, end=6e-5), b2=0.95, weight_decay=0.1, clip_norm=1.0
        ),
        train=Train(steps=570_000, log_every=100, micro_batches=4),
        evaluate=Evaluate(tasks=("c4_causal_lm",), every=10_000, max_examples=4096),
        checkpoint=Checkpoint(every=5_000, keep=3),
        topology="v6e:4x4",
    )
