"""BERT-base on Wikipedia: 110 million parameters, masked language modelling.

Reproduces: BERT's pretraining without its next-sentence task, which RoBERTa found not to help (arXiv:1907.11692,
    section 4.2), on Wikipedia alone (BERT also read BooksCorpus, which is no longer public). Masks are drawn anew in
    every epoch, documents are joined and cut to 512 tokens.
Paper: Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding",
    arXiv:1810.04805, section 3.1 and appendix A.2.
Data: wikipedia/20230601.en of TFDS (tasks/wikipedia.py) and BERT's vocab.txt.
Hardware and time: not run at full length yet; BERT-base took 4 days on 16 TPU chips.
Expected: a masked-word loss of about 1.5.
Command: t2t train pretrain/bert_base --vocabulary PATH
"""

from t2t import heads
from t2t.config import Checkpoint, Data, Evaluate, Experiment, Train
from t2t.families import bert
from t2t.objectives.masked import MaskedLanguageModeling
from t2t.train.optimizer import AdamW, Linear


def get_config() -> Experiment:
    """The paper's batch of 256 rows of 512 tokens for a million steps, with Adam as BERT's code has it."""
    return Experiment(
        name="bert_base",
        model=bert.PRESETS["bert-base-uncased"](head=heads.MaskedLM()),
        vocabulary="vocabularies/bert-base-uncased",
        data=Data(
            modules=("tasks.wikipedia",),
            train="wikipedia_mlm",
            lengths={"inputs": 512, "targets": 512, "predictions": 80},
            batch_size=256,
        ),
        objective=MaskedLanguageModeling(),
        optimizer=AdamW(
            learning_rate=Linear(peak=1e-4, warmup_steps=10_000),
            eps=1e-6,
            bias_correction=False,
            weight_decay=0.01,
            clip_norm=1.0,
        ),
        train=Train(steps=1_000_000, log_every=100, micro_batches=2),
        evaluate=Evaluate(tasks=("wikipedia_mlm",), every=10_000, max_examples=4096),
        checkpoint=Checkpoint(every=5_000, keep=3),
        topology="v5e:2x4",
    )
