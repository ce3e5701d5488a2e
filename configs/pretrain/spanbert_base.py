"""SpanBERT-base on Wikipedia: 108 million parameters, masked spans of words in single sequences of cased text.

Reproduces: the masks and the single sequences of SpanBERT (spans of 3.8 words on average, each masked, replaced or kept
    as one) without its span boundary objective, which predicts a span from the words at its borders and which t2t does
    not have; on Wikipedia alone (BooksCorpus is no longer public). Pieces of text may cross from a document into the
    next, where SpanBERT keeps to one.
Paper: Joshi et al., "SpanBERT: Improving Pre-training by Representing and Predicting Spans", arXiv:1907.10529, sections
    3 and 4.2: 2.4 million steps of 256 rows of 512 tokens, AdamW with epsilon 1e-8 and a decay of 0.1.
Data: wikipedia/20230601.en of TFDS (tasks/wikipedia.py) and the vocab.txt of cased BERT.
Hardware and time: not run at full length yet; SpanBERT-large took 15 days on 32 V100 GPUs.
Expected: a masked-word loss above BERT-base's 1.5, for neighbours of a masked word are masked too.
Command: t2t train pretrain/spanbert_base --vocabulary PATH
"""

from t2t import heads
from t2t.config import Checkpoint, Data, Evaluate, Experiment, Train
from t2t.families import bert
from t2t.objectives.masked import MaskedLanguageModeling
from t2t.train.optimizer import AdamW, Linear


def get_config() -> Experiment:
    """The paper's batch, steps and rate."""
    return Experiment(
        name="spanbert_base",
        model=bert.PRESETS["bert-base-cased"](head=heads.MaskedLM()),
        vocabulary="vocabularies/bert-base-cased",
        data=Data(
            modules=("tasks.wikipedia",),
            train="wikipedia_mlm_span",
            lengths={"inputs": 512, "targets": 512, "predictions": 77},
            batch_size=256,
        ),
        objective=MaskedLanguageModeling(),
        optimizer=AdamW(
            learning_rate=Linear(peak=1e-4, warmup_steps=10_000), eps=1e-8, weight_decay=0.1, clip_norm=1.0
        ),
        train=Train(steps=2_400_000, log_every=100),
        evaluate=Evaluate(tasks=("wikipedia_mlm_span",), every=10_000, max_examples=4096),
        checkpoint=Checkpoint(every=5_000, keep=3),
        topology="v5e:4x4",
    )
