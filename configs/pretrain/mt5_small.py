"""mT5-small on mC4: 300 million parameters, most of them the table of 250,112 pieces, span corruption in 107 languages.

Reproduces: the pretraining of mT5-small, a million steps of 1024 rows of 1024 tokens: a trillion tokens. Language l is
    sampled in proportion to its number of examples to the power of 0.3, which gives Swahili and its like a share.
Paper: Xue et al., "mT5: A massively multilingual pre-trained text-to-text transformer", arXiv:2010.11934, sections 3.1
    and 3.2: the shape of T5 1.1 without dropout, T5's rate 1/sqrt(max(step, 10^4)), 15 % in spans of 3.
Data: c4/multilingual prepared by TFDS (tasks/mc4.py) and mT5's SentencePiece vocabulary. It does not fit any memory:
    make a token cache first, t2t cache pretrain/mt5_small, and set T2T_CACHE.
Hardware and time: not run at full length yet. A trillion tokens of inputs at 3.3e8 floating-point operations each, of
    which half are the output layer's, are 3.5e20: two to three days on 64 TPU v4 chips at a tenth of their peak.
Expected: no published loss; fine-tuned on English alone, XNLI accuracy 67.5 and XQuAD F1 58.1 (table 2, mT5-Small).
Command: t2t train pretrain/mt5_small --vocabulary PATH
"""

from t2t.config import Checkpoint, Data, Evaluate, Experiment, Train
from t2t.families import mt5
from t2t.objectives.language_modeling import LanguageModeling
from t2t.train.optimizer import Adafactor, InverseSquareRoot


def get_config() -> Experiment:
    """A million tokens of inputs a batch, all languages of mC4 in each."""
    return Experiment(
        name="mt5_small",
        model=mt5.PRESETS["mt5-small"](),
        vocabulary="vocabularies/mt5",
        data=Data(
            modules=("tasks.mc4",),
            train="mc4_span_corruption",
            lengths={"inputs": 1024, "targets": 229},
            batch_size=1024,
        ),
        objective=LanguageModeling(z_loss=1e-4, logits_chunk=64),
        optimizer=Adafactor(learning_rate=InverseSquareRoot()),
        train=Train(steps=1_000_000, log_every=100, micro_batches=2),
        evaluate=Evaluate(
            tasks=("mc4_en_span_corruption", "mc4_sw_span_corruption", "mc4_zh_span_corruption"),
            every=10_000,
            max_examples=1024,
        ),
        checkpoint=Checkpoint(every=5_000, keep=3),
        topology="v5e:8x8",
    )
