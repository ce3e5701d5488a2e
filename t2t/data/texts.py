"""The texts of tasks as they come from their sources, for vocabularies that are trained on them."""

from collections.abc import Iterator

from t2t.data.mixtures import Spec, leaf_tasks


def raw_texts(spec: Spec, *, split: str = "train") -> Iterator[str]:
    """Every string of every example of these tasks' sources, task by task, before any preprocessing.

    Args:
        spec: a task, a mixture, or rates by name; rates do not matter here.
        split: of the sources.
    """
    for task in leaf_tasks(spec):
        for row in task.source.get_dataset(split=split, shuffle=False).as_numpy_iterator():
            for value in row.values():
                if isinstance(value, bytes):
                    yield value.decode("utf-8")
