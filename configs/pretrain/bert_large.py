"""BERT-large on Wikipedia: 335 million parameters, masked language modelling.

Reproduces: what pretrain/bert_base does, in the larger size: BERT's pretraining without its next-sentence task, on
    Wikipedia alone, in rows of 512 tokens throughout.
Paper: Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding",
    arXiv:1810.04805, section 3.1 and appendix A.2.
Data: wikipedia/20230601.en of TFDS (tasks/wikipedia.py) and BERT's vocab.txt.
Hardware and time: not run at full length yet; its step compiles for v5e:4x4 and fits (t2t plan pretrain/bert_large).
    BERT-large took 4 days on 64 TPU chips.
Expected: a masked-word loss of about 1.3.
Command: t2t train pretrain/bert_large --vocabulary PATH
"""

import dataclasses

from configs.pretrain import bert_base
from t2t import heads
from t2t.config import Experiment
from t2t.families import bert


def get_config() -> Experiment:
    """BERT-base's run with the larger model."""
    base = bert_base.get_config()
    return dataclasses.replace(
        base,
        name="bert_large",
        model=bert.PRESETS["bert-large-uncased"](head=heads.MaskedLM()),
        train=dataclasses.replace(base.train, micro_batches=4),
        topology="v5e:4x4",
    )
