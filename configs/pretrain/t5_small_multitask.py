"""T5-small as it was released: C4 mixed with every supervised task from the first step on.

Reproduces: the multi-task pretraining of the released T5-small, of which the supervised tasks are not fine-tuned again:
    710,000 virtual examples of C4, each supervised task its own number, at most 1,000,000.
Paper: Raffel et al., "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer",
    arXiv:1910.10683, sections 3.5.3 and 3.7: 2^20 steps of 2^11 rows of 512 tokens, a million million tokens.
Data: TFDS names of C4, GLUE, SuperGLUE, SQuAD, CNN/DailyMail and WMT (tasks/t5_multitask.py), prepared beforehand; the
    rates are known without the data: t2t tasks t5_multitask_small --rates. A vocabulary: T5's own SentencePiece model.
    Every host holds its tokens in memory, so take a part of C4 (tasks/c4.py) or make token caches (t2t cache).
Other sizes: data.train t5_multitask_base, _large, _3b and _11b with the model of that size.
Hardware and time: not run at full length yet. 2^20 steps of 2^20 tokens at 3.6e8 floating-point operations each are
    4e20: about 5 days on 64 TPU v3 cores at a third of their peak.
Expected: GLUE's average near 77 and SuperGLUE's near 63 after fine-tuning (table 14 of the paper).
Command: t2t train pretrain/t5_small_multitask --vocabulary PATH
"""

from t2t.config import Checkpoint, Data, Evaluate, Experiment, Train
from t2t.families import t5
from t2t.objectives.language_modeling import LanguageModeling
from t2t.train.optimizer import Adafactor, InverseSquareRoot

STEPS = 2**20


def get_config() -> Experiment:
    """T5's multi-task mixture on its small size; every task is evaluated with its own metrics."""
    return Experiment(
        name="t5_small_multitask",
        model=t5.PRESETS["t5-small"](),
        vocabulary="vocabularies/t5",
        data=Data(
            modules=("tasks.t5_multitask",),
            train="t5_multitask_small",
            lengths={"inputs": 512, "targets": 512},
            batch_size=2048,
            open_rows=32,
        ),
        objective=LanguageModeling(z_loss=1e-4),
        optimizer=Adafactor(learning_rate=InverseSquareRoot()),
        train=Train(steps=STEPS, micro_batches=4, log_every=100),
        evaluate=Evaluate(
            tasks=("t5_multitask_small", "glue_mnli_mismatched"), every=20_000, batch_size=256, max_examples=2048
        ),
        checkpoint=Checkpoint(every=20_000, keep=3),
        topology="v5e:4x4",
    )
