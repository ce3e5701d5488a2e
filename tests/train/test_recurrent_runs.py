"""Runs of models that remember: XLNet in both directions and Transformer-XL, on any mesh, stopped and not."""

import dataclasses

import jax
import numpy as np
import pytest

from t2t import heads
from t2t.errors import UsageError
from t2t.families import transfo_xl, xlnet
from t2t.objectives.language_modeling import LanguageModeling
from t2t.objectives.permutation import PermutationLanguageModeling
from t2t.train import beginning, build, loop, preview, progress, tasks
from t2t.vocabulary import ByteVocabulary
from tests.train import recurrent_tasks, tiny_run
from tests.train.test_loop import Killed, assert_same_run, kill, metrics, stop_before

pytestmark = pytest.mark.slow

VOCAB = 384
XLNET = dataclasses.replace(
    xlnet.with_head(
        xlnet.xlnet(
            num_layers=2, d_model=16, num_heads=2, d_ff=24, vocab_size=VOCAB, memory_length=12, memory_reuse=12
        ),
        heads.PRETRAINING,
    ),
    bidirectional=True,
)
TXL = transfo_xl.with_head(
    transfo_xl.transfo_xl(
        num_layers=2, d_model=16, num_heads=2, head_dim=8, d_ff=24, vocab_size=VOCAB, cutoffs=(), memory_length=20
    ),
    heads.PRETRAINING,
)
RUNS = {
    "xlnet": {
        "model": XLNET,
        "objective": PermutationLanguageModeling(),
        "data": {
            "train": "lines_permutation_lm_bidirectional",
            "lengths": {"inputs": 24, "targets": 24, "predictions": 4},
        },
        "evaluate": {"tasks": ("lines_permutation_lm_forward",)},
    },
    "transfo_xl": {
        "model": TXL,
        "objective": LanguageModeling(),
        "data": {"train": "lines_causal_lm", "lengths": {"targets": 20}},
        "evaluate": {"tasks": ("lines_causal_lm",)},
    },
}


def experiment(name: str, **changes):
    run = {key: value | changes.get(key, {}) if isinstance(value, dict) else value for key, value in RUNS[name].items()}
    rest = {key: value for key, value in changes.items() if key not in run}
    run["data"] = run["data"] | {"modules": ("tests.train.recurrent_tasks",)}
    return tiny_run.experiment(**run, **rest)


@pytest.fixture(scope="module", params=list(RUNS))
def finished(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / request.param
    loop.train(experiment(request.param), path)
    return request.param, path


def test_a_killed_run_goes_on_bit_for_bit_with_its_memory(finished, tmp_path, monkeypatch):
    name, path = finished
    with monkeypatch.context() as patched:
        stop_before(patched, 8, kill)
        with pytest.raises(Killed):
            loop.train(experiment(name), tmp_path / "run")
    loop.train(experiment(name), tmp_path / "run")
    assert_same_run(path, tmp_path / "run")


@pytest.mark.parametrize("name", list(RUNS))
def test_another_mesh_and_micro_batches_give_the_same_losses(name, tmp_path):
    """But for dropout, of which each micro-batch draws its own: there is none here."""
    cut = {"train": {"micro_batches": 2, "steps": 6}, "mesh": {"data": 2, "fsdp": 2, "tensor": 2}}
    model = {"xlnet": _without_dropout(XLNET), "transfo_xl": _without_dropout(TXL)}[name]
    results = []
    for index, changes in enumerate(({"train": {"steps": 6}, "mesh": {"data": 1, "fsdp": 8}}, cut)):
        run = dataclasses.replace(experiment(name, **changes), model=model)
        loop.train(run, tmp_path / str(index))
        results.append([r["cross_entropy"] for r in metrics(tmp_path / str(index))])
    np.testing.assert_allclose(results[0], results[1], rtol=2e-4)


def _without_dropout(config):
    """The config with every `dropout` in it 0."""
    if not dataclasses.is_dataclass(config):
        return tuple(map(_without_dropout, config)) if isinstance(config, tuple) else config
    fields = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    return dataclasses.replace(
        config, **{name: 0.0 if name == "dropout" else _without_dropout(value) for name, value in fields.items()}
    )


@pytest.mark.parametrize("name", list(RUNS))
def test_the_memory_is_split_as_the_rows_are(name):
    pieces = build.build(experiment(name, mesh={"data": 4, "fsdp": 2}), ByteVocabulary())
    states = pieces.state.carry["memory"].states
    assert states.shape == (1, 2, 8, {"xlnet": 12, "transfo_xl": 20}[name], 16)
    assert states.sharding.shard_shape(states.shape)[2] == 1
    assert build.reads_on(pieces.experiment)
    assert not build.reads_on(tiny_run.experiment())
    answers = experiment("transfo_xl", data={"train": "tiny_first", "lengths": {"inputs": 40, "targets": 10}})
    assert not build.reads_on(answers)
    assert build.build(answers, ByteVocabulary()).state.carry == ()
    assert jax.tree.leaves(build.build(tiny_run.experiment(), ByteVocabulary()).state.carry) == []


def test_rows_hold_one_segment_and_follow_on_each_other(tmp_path):
    run = experiment("transfo_xl")
    pieces = build.build(run, ByteVocabulary())
    tasks.register(run)
    with (
        progress.Progress(tmp_path / "log", total=1) as report,
        beginning.read_data(pieces, tasks.to_train(run), report)(None) as batches,
    ):
        first, second = next(batches), next(batches)
    text = "".join(row["text"] for row in recurrent_tasks.documents("train"))
    vocabulary = ByteVocabulary()
    for before, after in zip(first["decoder_target_tokens"], second["decoder_target_tokens"], strict=True):
        joined = [int(token) for token in (*before, *after)]
        words = vocabulary.decode([token for token in joined if token != vocabulary.eos_id])
        assert words in text


def test_a_task_that_does_not_suit_the_memory_is_refused_before_the_first_step(tmp_path):
    with pytest.raises(ValueError, match="do not overlap, and the model has a memory_reuse"):
        loop.train(experiment("xlnet", data={"train": "lines_permutation_lm"}, evaluate={"tasks": ()}), tmp_path / "a")
    with pytest.raises(UsageError, match=r"lengths\['predictions'\]"):
        loop.train(experiment("xlnet", data={"lengths": {"inputs": 24, "targets": 24}}), tmp_path / "b")


def test_the_preview_of_a_run_compiles_it(tmp_path):
    lines = "\n".join(preview.training(experiment("xlnet"), tmp_path / "run"))
    assert "permutation_mask" in lines and "encoder_reversed" in lines
