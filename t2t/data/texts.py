"""The texts of tasks as they come from their sources, for vocabularies that are trained on them."""

import functools
from collections.abc import Iterator, Sequence

from t2t.data import preprocessors  # isort: skip - sets up TensorFlow
import seqio

from t2t.data import templates
from t2t.data.mixtures import Spec, leaf_tasks
from t2t.data.translation_pairs import TranslationPairs


def raw_texts(spec: Spec, *, split: str = "train") -> Iterator[str]:
    """The strings that these tasks read of every example of their sources, task by task, before any preprocessing.

    What several tasks read, such as the objectives on one corpus, comes once.

    Fields that a task leaves out (the address and time of a web page, the title of an article) are left out here.

    Args:
        spec: a task, a mixture, or rates by name; rates do not matter here.
        split: of the sources.
    """
    read = set()
    for task in leaf_tasks(spec):
        asked = fields_read(task)
        if (id(task.source), *asked) in read:
            continue
        read.add((id(task.source), *asked))
        for row in task.source.get_dataset(split=split, shuffle=False).as_numpy_iterator():
            for name in [name for name in asked if name in row] or row:
                if isinstance(row[name], bytes):
                    yield row[name].decode("utf-8")


def fields_read(task: seqio.Task) -> Sequence[str]:
    """Fields of the source that the first preprocessor takes, or that are features already.

    A source that has none of them is read by a preprocessor of another kind, which may take any field.
    """
    first = task.preprocessors[0] if task.preprocessors else None
    if isinstance(first, preprocessors.TextToText):
        return [first.inputs, first.targets]
    if isinstance(first, TranslationPairs):
        return [first.source, first.target]
    if first is not None and (prompts := templates.prompts_of(first)) is not None:
        return prompts.fields
    if isinstance(first, functools.partial) and first.func is seqio.preprocessors.rekey:
        return [field for field in first.keywords["key_map"].values() if field]
    return list(task.output_features)
