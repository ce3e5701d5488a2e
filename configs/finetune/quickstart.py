"""The small T5 of quickstart learns three tasks at once, told apart by the first word of the input.

    topic:  a passage                -> the package of the standard library it documents
    kind:   a passage                -> module, class, function or language
    cloze:  a sentence with a gap    -> the word that is missing

Reproduces: T5's multi-task fine-tuning in miniature (arXiv:1910.10683, sections 2.4 and 3.5.2).
Hardware and time: 2 CPU cores, 5 minutes.
Expected, on 256 held-out examples each: accuracies of about 65, 65 and 15 %; always answering the commonest class gives
    10, 41 and 8 %.
Command: t2t train quickstart, then t2t train finetune/quickstart.
"""

from configs import quickstart
from t2t.config import Checkpoint, Data, Evaluate, Experiment, Train
from t2t.objectives.language_modeling import LanguageModeling
from t2t.train.optimizer import Adafactor, Linear


def get_config() -> Experiment:
    """Fine-tuning from runs/quickstart, whose vocabulary it takes."""
    return Experiment(
        name="quickstart-finetune",
        model=quickstart.get_model(),
        init="runs/quickstart",
        data=Data(
            modules=("tasks.pydocs",),
            train="pydocs_multitask",
            lengths={"inputs": 128, "targets": 32},
            batch_size=24,
        ),
        objective=LanguageModeling(),
        optimizer=Adafactor(learning_rate=Linear(peak=0.01, warmup_steps=10)),
        train=Train(steps=200, log_every=20),
        evaluate=Evaluate(
            tasks=("pydocs_topic", "pydocs_kind", "pydocs_cloze"), every=200, batch_size=64, max_examples=256
        ),
        checkpoint=Checkpoint(every=100, keep=1),
        topology="v5e:1x1",
    )
