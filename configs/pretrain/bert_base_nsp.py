"""BERT-base on Wikipedia with its next-sentence task: 110 million parameters, masked words and pairs of segments.

Reproduces: BERT's pretraining with both its objectives, on Wikipedia alone (BERT also read BooksCorpus, which is no
    longer public). Pairs are drawn once; BERT's ten copies of the corpus differ in their pairs and masks, here masks
    are drawn anew in every epoch. BERT trains with 128 tokens for nine tenths of its steps, here all are of 512.
Paper: Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding",
    arXiv:1810.04805, section 3.1 and appendix A.2.
Data: wikipedia/20230601.en of TFDS (tasks/wikipedia.py) and BERT's vocab.txt. The articles and their pairs are held in
    memory: some 80 GB.
Hardware and time: not run at full length yet; BERT-base took 4 days on 16 TPU chips.
Expected: a masked-word loss of about 1.5, and 97 % of the pairs told right.
Command: t2t train pretrain/bert_base_nsp --vocabulary PATH
"""

from t2t import heads
from t2t.config import Checkpoint, Data, Evaluate, Experiment, Train
from t2t.families import bert
from t2t.objectives.sentence_pairs import SentencePairModeling
from t2t.train.optimizer import AdamW, Linear


def get_config() -> Experiment:
    """The paper's batch of 256 pairs for a million steps, with Adam as BERT's code has it."""
    return Experiment(
        name="bert_base_nsp",
        model=bert.PRESETS["bert-base-uncased"](head=heads.PRETRAINING),
        vocabulary="vocabularies/bert-base-uncased",
        data=Data(
            modules=("tasks.wikipedia",),
            train="wikipedia_mlm_nsp",
            lengths={"inputs": 512, "targets": 512, "predictions": 77},
            batch_size=256,
        ),
        objective=SentencePairModeling(),
        optimizer=AdamW(
            learning_rate=Linear(peak=1e-4, warmup_steps=10_000),
            eps=1e-6,
            bias_correction=False,
            weight_decay=0.01,
            clip_norm=1.0,
        ),
        train=Train(steps=1_000_000, log_every=100, micro_batches=2),
        evaluate=Evaluate(tasks=("wikipedia_mlm_nsp",), every=10_000, max_examples=4096),
        checkpoint=Checkpoint(every=5_000, keep=3),
        topology="v5e:2x4",
    )
