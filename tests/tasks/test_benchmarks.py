"""Public supervised tasks on rows of TFDS's shape: nothing here needs a network, and nothing asks for one."""

import importlib
import socket

import pytest

seqio = pytest.importorskip("seqio")

from t2t.data import examples, mixtures, registry, supervised  # noqa: E402
from t2t.vocabulary import ByteVocabulary  # noqa: E402
from tests.tasks import benchmarks  # noqa: E402

MODULES = (
    "glue", "super_glue", "squad", "summarization", "wmt", "closed_book", "xnli", "tagging", "text_classification",
    "t5_multitask",
)  # fmt: skip
LENGTHS = {"inputs": 1000, "targets": 300}


@pytest.fixture(scope="module", autouse=True)
def modules():
    """All of them, imported where the network cannot be reached."""

    def refuse(*args, **kwargs):
        raise AssertionError("registering a task must not use the network")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", refuse)
        patch.setattr(socket, "getaddrinfo", refuse)
        return {name: importlib.import_module(f"tasks.{name}") for name in MODULES}


class Rows(seqio.DataSource):
    """Rows in memory."""

    supports_arbitrary_sharding = False

    def __init__(self, rows, splits=("train", "validation", "test")):
        super().__init__(splits=splits)
        self._rows = rows

    def rows(self, split):
        return self._rows

    def fingerprint(self, split):
        return [repr(self._rows)]

    def list_shards(self, split):
        return [split]

    def num_input_examples(self, split):
        return len(self._rows)

    def get_dataset(self, *args, **settings):
        raise NotImplementedError


def on_rows(name, *rows):
    task = seqio.TaskRegistry.get(name)
    return task.replace(source=task.source.on(Rows(rows)))


def read(task, split="train"):
    made = examples.load_examples(task, split, vocabulary=ByteVocabulary(), lengths=LENGTHS, seed=0, texts=True)
    return made.store.texts


@pytest.mark.parametrize("name", benchmarks.CASES)
def test_rows_become_the_examples_that_t5_prints(name):
    row, inputs, targets = benchmarks.CASES[name]
    task = on_rows(name, row)
    split = "train" if "train" in seqio.TaskRegistry.get(name).splits else "test"
    made = list(task.source.examples(split))
    assert (made[0]["inputs"], made[0]["targets"]) == (inputs, targets)
    texts = read(task, split)
    assert texts["inputs_pretokenized"][0] == inputs
    assert texts["targets_pretokenized"][0] == targets


@pytest.mark.parametrize("name", sorted({name.rpartition("_")[0] or name for name in benchmarks.CASES}))
def test_the_cases_name_tasks_of_every_module(name):
    assert any(task.startswith(name) for task in seqio.TaskRegistry.names())


def test_a_right_prediction_is_perfect_by_every_metric():
    """The target itself through postprocessing and metrics: 100 per cent everywhere, nothing invalid."""
    for name, (row, _, _) in benchmarks.CASES.items():
        task = on_rows(name, row, row)
        split = "validation"
        texts = read(task, split)
        rows = [{key: values[i] for key, values in texts.items()} | examples_of(task, split)[i] for i in range(2)]
        targets = texts["targets_pretokenized"]
        right = [task.postprocess_fn(t, example=r, is_target=True) for t, r in zip(targets, rows, strict=True)]
        ours = [task.postprocess_fn(t, example=r, is_target=False) for t, r in zip(targets, rows, strict=True)]
        for metric in task.predict_metric_fns:
            for measured, value in metric(right, ours).items():
                if name == "glue_ax" or measured in ("matthews", "pearson", "spearman"):
                    continue  # of one label alone
                if name in ("glue_qqp", "super_glue_cb") and measured == "f1":
                    continue  # the positive label, or two of three, do not occur
                if name == "super_glue_record" and measured == "f1":
                    continue  # its answer "A" is an article, and no word
                wanted = 0.0 if measured in ("invalid_predictions", "wrong_lengths") else 100.0
                assert value == pytest.approx(wanted), (name, measured)


def examples_of(task, split):
    return list(task.source.examples(split))


def names_of_tfds(task):
    source = task.source.source
    return source.tfds_dataset.name, source.tfds_dataset._split_map


@pytest.mark.slow
def test_the_sources_are_those_of_tfds():
    tfds = importlib.import_module("tensorflow_datasets")
    checked = 0
    for name in seqio.TaskRegistry.names():
        task = seqio.TaskRegistry.get(name)
        if not isinstance(task.source, supervised.SupervisedSource) or name.startswith("flan"):
            continue
        dataset, _ = names_of_tfds(task)
        path, _, version = dataset.partition(":")
        top, _, config = path.partition("/")
        builder = tfds.builder_cls(top)
        configs = {one.name: one.version for one in builder.BUILDER_CONFIGS}
        assert not configs or config in configs, dataset
        assert version in {str(configs.get(config)), str(builder.VERSION)}, dataset
        checked += 1
    assert checked > 90


def test_labels_are_in_the_order_of_tfds():
    tfds = importlib.import_module("tensorflow_datasets")
    for suite, prefix in (("glue", "glue_"), ("super_glue", "super_glue_")):
        for config in tfds.builder_cls(suite).BUILDER_CONFIGS:
            name = f"{prefix}{config.name}"
            if (
                config.label_classes is None
                or name not in seqio.TaskRegistry.names()
                or config.name in ("wsc", "record")
            ):
                continue
            form = seqio.TaskRegistry.get(name).source.form
            assert tuple(form.examples.labels) == tuple(config.label_classes), name
    tagging = importlib.import_module("t2t.data.tagging")
    conll = importlib.import_module("tensorflow_datasets.core.dataset_builders.conll")
    assert tagging.UPOS_LABELS == tuple(conll.UPOS)
    utils = importlib.import_module("tensorflow_datasets.core.dataset_builders.conll.conll_dataset_builder_utils")
    assert tagging.NER_LABELS == tuple(utils.NER_TAGS)


def test_wsc_is_learned_from_right_nouns_and_evaluated_on_all():
    row, _, _ = benchmarks.CASES["super_glue_wsc"]
    wrong = {**row, "label": 0, "span1_text": "yard", "idx": 1}
    task = on_rows("super_glue_wsc", row, wrong)
    assert [one["targets"] for one in task.source.examples("train")] == ["stable"]
    assert [one["label"] for one in task.source.examples("validation")] == [1, 0]


def test_record_is_learned_from_every_answer():
    task = on_rows("super_glue_record", benchmarks.CASES["super_glue_record"][0])
    assert [one["targets"] for one in task.source.examples("train")] == ["A", "C"]
    held_out = list(task.source.examples("validation"))
    assert [(one["targets"], list(one["answers"])) for one in held_out] == [("A", ["A", "C"])]


def test_a_wrong_row_is_named():
    task = on_rows("glue_rte", {"sentence1": "A.", "label": 0, "idx": 0})
    with pytest.raises(Exception, match="row 0 of train has no field 'sentence2'; there is sentence1, label, idx"):
        read(task)
    task = on_rows("glue_rte", {"sentence1": "A.", "sentence2": "B.", "label": "perhaps", "idx": 0})
    with pytest.raises(Exception, match="the label is 'perhaps'; it can be entailment, not_entailment"):
        read(task)


def test_rates_of_the_published_mixture_need_no_data(modules):
    """The released models' mixture, in examples: 4,827,316 for the small model, of which C4 is 14.7 %."""
    rates = mixtures.flat_rates("t5_multitask_small", {})
    assert rates["c4_span_corruption"] == pytest.approx(710_000 / 4_827_316)
    assert rates["wmt15_enfr"] == rates["wmt_t2t_ende"] == pytest.approx(1_000_000 / 4_827_316)
    assert rates["glue_rte"] == rates["super_glue_rte"] == pytest.approx(1245 / 4_827_316)
    eleven = mixtures.flat_rates("t5_multitask_11b", {})
    assert eleven["c4_span_corruption"] == pytest.approx(133_000_000 / (4_827_316 - 710_000 + 133_000_000))
    capped = modules["t5_multitask"].multitask_rates(2**19, 2**19)
    assert {name for name, rate in capped.items() if rate == 2**19} == {
        "c4_span_corruption", "wmt15_enfr", "wmt16_enro", "wmt_t2t_ende",
    }  # fmt: skip
    table = mixtures.stated_table("t5_multitask_small")
    assert "364,868,892" in table
    assert len(table.splitlines()) == 1 + 23


def test_proportional_mixtures_can_be_shown_without_data():
    table = mixtures.stated_table("glue")
    assert table.splitlines()[0].split() == ["task", "examples", "rate", "share"]
    assert any(line.split()[:2] == ["glue_mnli", "392,702"] for line in table.splitlines())
    registry.add_mixture("of_unknown", {"ud_en_ewt": lambda task: task.num_input_examples("train")})
    with pytest.raises(ValueError, match="'ud_en_ewt' is not known before it is read"):
        mixtures.stated_table("of_unknown")
