"""RoBERTa-base on Wikipedia: 125 million parameters, masked words in whole sentences, large batches.

Reproduces: the pretraining of RoBERTa-base (full sentences across documents, masks drawn anew in every epoch, no
    sentence pairs) on Wikipedia alone. RoBERTa read 160 GB, of which BooksCorpus, Stories and CC-News are not public;
    with tasks/books.py, wikipedia_books_full_sentences adds other books.
Paper: Liu et al., "RoBERTa: A Robustly Optimized BERT Pretraining Approach", arXiv:1907.11692, sections 4 and 5 and
    table 9: Adam with b2 0.98 and epsilon 1e-6, no clipping. Smaller batches want smaller rates: 1e-4 for 256 rows,
    5e-4 for 2048 (examples/roberta/README.pretraining.md of facebookresearch/fairseq).
Data: wikipedia/20230601.en of TFDS (tasks/wikipedia.py) and RoBERTa's vocab.json with merges.txt. Sentences are held in
    memory: some 20 GB.
Hardware and time: not run at full length yet; RoBERTa's authors took about a day for 100,000 steps of the large model
    on 1024 V100 GPUs.
Expected: a masked-word perplexity of about 3.7 (table 3: 3.68 for 2000 rows, on books and Wikipedia).
Command: t2t train pretrain/roberta_base --vocabulary PATH
"""

from t2t import heads
from t2t.config import Checkpoint, Data, Evaluate, Experiment, Train
from t2t.families import roberta
from t2t.objectives.masked import MaskedLanguageModeling
from t2t.train.optimizer import AdamW, Linear


def get_config() -> Experiment:
    """The paper's 8192 rows of 512 tokens for half a million steps."""
    return Experiment(
        name="roberta_base",
        model=roberta.PRESETS["roberta-base"](head=heads.MaskedLM()),
        vocabulary="vocabularies/roberta-base",
        data=Data(
            modules=("tasks.wikipedia",),
            train="wikipedia_full_sentences",
            lengths={"inputs": 512, "targets": 512, "predictions": 77},
            batch_size=8192,
        ),
        objective=MaskedLanguageModeling(),
        optimizer=AdamW(learning_rate=Linear(peak=6e-4, warmup_steps=24_000), b2=0.98, eps=1e-6, weight_decay=0.01),
        train=Train(steps=500_000, log_every=100, micro_batches=4),
        evaluate=Evaluate(tasks=("wikipedia_full_sentences",), every=10_000, batch_size=512, max_examples=4096),
        checkpoint=Checkpoint(every=5_000, keep=3),
        topology="v4:4x4x4",
    )
