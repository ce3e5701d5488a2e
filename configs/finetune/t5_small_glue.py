"""T5-small learns all of GLUE in one run, told apart by the first word of the input.

Reproduces: the fine-tuning of T5 on the GLUE mixture, examples-proportional, at a constant rate.
Paper: Raffel et al., "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer",
    arXiv:1910.10683, section 3.1.2: 2^18 steps of 128 rows of 512 tokens at 0.001, a checkpoint every 5,000 steps; the
    best of each task is chosen on its validation set: all 16 are kept here, and t2t report shows the step of each.
Data: GLUE by TFDS, or GLUE's tsv files below corpora/glue (tasks/glue.py). Packed rows hold several examples, so 2^14
    steps of 128 rows pass over GLUE about as often as the paper's longer run of single examples.
Hardware and time: not run at full length yet. 2^14 steps of 65,000 tokens at 3.6e8 floating-point operations each are
    4e17: an hour on 8 TPU v3 cores at a third of their peak.
Expected: an average on the validation sets near 80, the published model's.
Command: t2t import google-t5/t5-small models/t5-small, then t2t train finetune/t5_small_glue
"""

from t2t.config import Checkpoint, Data, Evaluate, Experiment, Train
from t2t.families import t5
from t2t.objectives.language_modeling import LanguageModeling
from t2t.train.optimizer import Adafactor, Constant

STEPS = 2**14


def get_config() -> Experiment:
    """The nine tasks and the second domain of MNLI, with GLUE's average as what the best checkpoint is chosen by."""
    return Experiment(
        name="t5_small_glue",
        model=t5.PRESETS["t5-small"](),
        init="models/t5-small",
        data=Data(
            modules=("tasks.glue",),
            train="glue",
            lengths={"inputs": 512, "targets": 84},
            batch_size=128,
            open_rows=32,
        ),
        objective=LanguageModeling(),
        optimizer=Adafactor(learning_rate=Constant(peak=1e-3)),
        train=Train(steps=STEPS, log_every=100),
        evaluate=Evaluate(tasks=("glue", "glue_mnli_mismatched"), every=1024, batch_size=256),
        checkpoint=Checkpoint(every=1024, keep_every=1024, best="glue/average"),
        topology="v5e:2x2",
    )
