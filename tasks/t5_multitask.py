"""T5's multi-task pretraining: span corruption on C4 mixed with every supervised task of the paper.

    t5_multitask_small   t5_multitask_base   t5_multitask_large   t5_multitask_3b   t5_multitask_11b
        what the released models learned: C4 counts for so many examples (`UNLABELLED`), supervised tasks for theirs,
        at most 1,000,000
    t5_multitask
        section 3.5.2: every task, C4 too, counts for its examples and at most 2^19

    t5_supervised        the supervised tasks of it alone
    multitask_rates      the rates for another size of the virtual unlabelled set or another cap

The supervised tasks are GLUE without WNLI, SuperGLUE with dpr, CNN/DailyMail, SQuAD, and WMT English to German, French
and Romanian. RTE, which is in GLUE and in SuperGLUE, has half its rate in both. Their numbers of examples are those of
TFDS, so that the rates are known without a download: `t2t tasks t5_multitask_small --rates` shows them.

Evaluation reads validation sets: name the mixture in evaluate.tasks, and each task gets its own metrics; besides
glue_mnli_mismatched, which nothing is learned from.

Reference: Raffel et al., "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer",
arXiv:1910.10683, sections 3.5.2 (examples-proportional mixing) and 3.7 (the released models: 710,000, 2,620,000,
8,660,000, 33,500,000 and 133,000,000 unlabelled examples); all_mix and all_proportional of its code.

Differs: C4 is version 3.1.0 of TFDS, since 2.2.0 cannot be read any more.
"""

import importlib

from t2t.data import mixtures, registry

_glue, _super_glue = importlib.import_module("tasks.glue"), importlib.import_module("tasks.super_glue")
for _name in ("c4", "squad", "summarization", "wmt"):
    importlib.import_module(f"tasks.{_name}")

UNSUPERVISED = "c4_span_corruption"

UNLABELLED = {
    "small": 710_000.0,
    "base": 2_620_000.0,
    "large": 8_660_000.0,
    "3b": 33_500_000.0,
    "11b": 133_000_000.0,
}
"""Examples that C4 counts for, by the size of the model."""

MAXIMUM = 1_000_000.0
"""Examples that a supervised task of the released models counts for at most."""

BEST_MAXIMUM = 2.0**19
"""The cap of section 3.5.2 that does best on most tasks."""

LARGE_TASKS = ("cnn_dailymail", "squad", "wmt_t2t_ende", "wmt15_enfr", "wmt16_enro")
"""The tasks beside GLUE and SuperGLUE."""


def multitask_rates(unlabelled: float, maximum: float) -> dict[str, float]:
    """The rate of each task.

    Args:
        unlabelled: examples that C4 counts for.
        maximum: those that a supervised task counts for at most.

    Example:
        >>> rates = multitask_rates(710_000, 1_000_000)
        >>> rates["wmt15_enfr"], rates["squad"], rates["glue_rte"], round(sum(rates.values()))
        (1000000.0, 87599.0, 1245.0, 4827316)
    """
    if not (unlabelled > 0 and maximum > 0):
        raise ValueError(f"unlabelled={unlabelled} and maximum={maximum} must be positive numbers of examples")
    large = {task.name: float(task.source.num_examples["train"]) for task in mixtures.leaf_tasks(_equal(LARGE_TASKS))}
    rates = {**_glue.RATES, **_super_glue.RATES, **large}
    halved = {name: rate / 2 if name.endswith("_rte") else rate for name, rate in rates.items()}
    return {UNSUPERVISED: float(unlabelled), **{name: min(rate, float(maximum)) for name, rate in halved.items()}}


def _equal(names: tuple[str, ...]) -> dict[str, float]:
    return dict.fromkeys(names, 1.0)


for _size, _unlabelled in UNLABELLED.items():
    registry.add_mixture(f"t5_multitask_{_size}", multitask_rates(_unlabelled, MAXIMUM))
registry.add_mixture("t5_multitask", multitask_rates(BEST_MAXIMUM, BEST_MAXIMUM))
registry.add_mixture(
    "t5_supervised",
    {name: rate for name, rate in multitask_rates(MAXIMUM, MAXIMUM).items() if name != UNSUPERVISED},
)
