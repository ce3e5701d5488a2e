"""Benchmarks of several tasks: the one number that they report of all."""

from collections.abc import Iterable, Mapping, Sequence

Results = Mapping[str, Mapping[str, float | None]]
"""Metrics by task."""

GLUE: Mapping[str, Sequence[str]] = {
    "glue_cola": ("matthews",),
    "glue_sst2": ("accuracy",),
    "glue_mrpc": ("f1", "accuracy"),
    "glue_stsb": ("pearson", "spearman"),
    "glue_qqp": ("f1", "accuracy"),
    "glue_mnli": ("accuracy",),
    "glue_qnli": ("accuracy",),
    "glue_rte": ("accuracy",),
    "glue_wnli": ("accuracy",),
}
"""GLUE's tasks and the metrics whose mean is a task's score."""

SUPER_GLUE: Mapping[str, Sequence[str]] = {
    "super_glue_boolq": ("accuracy",),
    "super_glue_cb": ("f1", "accuracy"),
    "super_glue_copa": ("accuracy",),
    "super_glue_multirc": ("f1", "exact_match"),
    "super_glue_record": ("f1", "exact_match"),
    "super_glue_rte": ("accuracy",),
    "super_glue_wic": ("accuracy",),
    "super_glue_wsc": ("accuracy",),
}
"""The same of SuperGLUE."""

SUITES: Mapping[str, Mapping[str, Sequence[str]]] = {
    "glue": GLUE,
    "glue_without_wnli": {task: metrics for task, metrics in GLUE.items() if task != "glue_wnli"},
    "super_glue": SUPER_GLUE,
}
"""The benchmarks by name. Papers often leave WNLI out, whose validation set misleads."""

ALSO = {"glue_mnli": "glue_mnli_mismatched"}
"""Tasks whose score is the mean of both, where the other is evaluated too, as GLUE's leaderboard has it."""


def complete(tasks: Iterable[str]) -> tuple[str, ...]:
    """The benchmarks all of whose tasks are among these."""
    there = set(tasks)
    return tuple(name for name, suite in SUITES.items() if there >= set(suite))


def averages(results: Results) -> dict[str, dict[str, float]]:
    """The mean score of the tasks of each benchmark that is there as a whole, and how many examples it is of.

    A benchmark is left out where one of its tasks lacks a metric, such as those of test sets.

    Example:
        >>> means = averages({task: {metric: 80.0 for metric in metrics} for task, metrics in SUPER_GLUE.items()})
        >>> means["super_glue"]["average"]
        80.0

    Reference: Wang et al., "GLUE", arXiv:1804.07461, section 4; "SuperGLUE", arXiv:1905.00537, section 3.3.
    """
    found = {}
    for name in complete(results):
        scores = [_score(results, task, metrics) for task, metrics in SUITES[name].items()]
        if None not in scores:
            number = sum(results[task].get("examples") or 0.0 for task in SUITES[name])
            found[name] = {"average": sum(scores) / len(scores), "examples": number}
    return found


def _score(results: Results, task: str, metrics: Sequence[str]) -> float | None:
    own = [results[task].get(metric) for metric in metrics]
    if None in own:
        return None
    score = sum(own) / len(own)
    other = ALSO.get(task)
    if other is None or other not in results:
        return score
    second = _score(results, other, metrics)
    return None if second is None else (score + second) / 2
