"""Parameters from elsewhere: every kind of directory is told apart, heads may differ, everything else is refused."""

import dataclasses
import json
import re
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors import numpy as safetensors_numpy

from t2t import config_values
from t2t.errors import UsageError
from t2t.models import base
from t2t.nn.heads import LanguageModelHead
from t2t.train import beginning, build, checkpoint, initialize, run_directory, sources, trees
from t2t.vocabulary import ByteVocabulary
from tests.train import tiny_run


@pytest.fixture(scope="module")
def pieces():
    return build.build(tiny_run.experiment(), ByteVocabulary())


@pytest.fixture(scope="module")
def params(pieces):
    return initialize.fresh_params(pieces)


@pytest.fixture(scope="module")
def run(pieces, params, tmp_path_factory):
    """A run whose only checkpoint holds `params`."""
    directory = run_directory.RunDirectory(tmp_path_factory.mktemp("runs") / "run")
    about = run_directory.describe(pieces.experiment)
    directory.write(about, pieces.experiment, step=0, recipe=None, vocabulary=pieces.vocabulary)
    with checkpoint.CheckpointStore(directory.checkpoints) as store:
        state = initialize.make_state(params, pieces)
        store.save(3, beginning.to_save(state), data={}, config=about, vocabulary=pieces.vocabulary)
    return directory.path


def assert_same(left, right):
    jax.tree.map(np.testing.assert_array_equal, left, right)


@pytest.mark.slow
def test_fresh_parameters_depend_on_the_seed_alone(params):
    other = build.build(tiny_run.experiment(mesh={"data": 2, "fsdp": 2, "tensor": 2}), ByteVocabulary())
    assert_same(initialize.fresh_params(other), params)
    assert params["model"]["embed"]["embedding"].std() == pytest.approx(1.0, rel=0.05)


@pytest.mark.slow
def test_any_flipped_byte_of_a_checkpoint_is_named_before_anything_is_read(run, tmp_path):
    copied = shutil.copytree(run, tmp_path / "run")
    for path in [path for path in (copied / "checkpoints/3").rglob("*") if path.is_file() and path.stat().st_size]:
        whole = path.read_bytes()
        middle = len(whole) // 2
        path.write_bytes(whole[:middle] + bytes([whole[middle] ^ 4]) + whole[middle + 1 :])
        for opened in (copied, copied / "checkpoints/3"):
            with pytest.raises(checkpoint.DamagedCheckpointError, match=path.name):
                sources.open_source(opened)
        path.write_bytes(whole)
    assert sources.open_source(copied).kind == "run"


def test_runs_and_checkpoints_are_read(run, pieces, params):
    for path, kind in ((run, "run"), (run / "checkpoints/3", "checkpoint")):
        source = sources.open_source(path)
        assert (source.kind, source.config, source.vocabulary) == (
            kind,
            pieces.experiment.model,
            run / "checkpoints/3/vocabulary",
        )
        loaded = initialize.load_params(source, pieces)
        assert_same(loaded, params)
        assert (
            loaded["model"]["embed"]["embedding"].sharding
            == pieces.state.params["model"]["embed"]["embedding"].sharding
        )


def test_model_directories_are_read(tmp_path, pieces, params):
    (tmp_path / "params").mkdir()
    leaves = {path: np.asarray(leaf) for path, leaf in trees.by_path(params["model"]).items()}
    safetensors_numpy.save_file(leaves, tmp_path / "params/all.safetensors")
    content = {"t2t": "0", "model": config_values.to_json(pieces.experiment.model)}
    (tmp_path / "config.json").write_text(json.dumps(content))
    source = sources.open_source(tmp_path)
    assert (source.kind, source.config, source.vocabulary) == ("model", pieces.experiment.model, None)
    assert_same(initialize.load_params(source, pieces), params)


@pytest.fixture(scope="module")
def model(tmp_path_factory, pieces, params):
    """A model directory as `t2t import` writes it."""
    directory = tmp_path_factory.mktemp("models") / "model"
    (directory / "params").mkdir(parents=True)
    leaves = {path: np.asarray(leaf) for path, leaf in trees.by_path(params["model"]).items()}
    safetensors_numpy.save_file(leaves, directory / "params/model.safetensors")
    content = {"t2t": "0", "model": config_values.to_json(pieces.experiment.model), "start_id": 0,
               "ends_prompts": False, "origin": {"kept": {}, "generation": {"forced_bos_token_id": None}}}  # fmt: skip
    (directory / "config.json").write_text(json.dumps(content))
    return directory


SCALE = "decoder/final_norm/scale"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda held: held.pop(SCALE), f"{SCALE} is lacking"),
        (lambda held: held.update(more=np.zeros(3)), "holds more, which is no parameter of it"),
        (lambda held: held.update({SCALE: np.ones(15)}), rf"holds {SCALE} of shape \(15,\), config.json means \(16,\)"),
        (lambda held: held.update({SCALE: np.ones(16, np.int8)}), rf"holds {SCALE} as I8; possible are BF16, F16, F32"),
        (lambda held: held.clear(), "embed/embedding is lacking; .* is lacking"),
    ],
)
def test_parameters_that_are_not_those_of_the_config_are_named(model, tmp_path, change, message):
    copied = shutil.copytree(model, tmp_path / "model")
    file = copied / "params/model.safetensors"
    held = safetensors_numpy.load_file(file)
    change(held)
    safetensors_numpy.save_file(held, file)
    with pytest.raises(UsageError, match=f"{message}.*Restore both as they were written, or .* t2t import"):
        sources.open_source(copied)


def test_files_of_parameters_that_are_damaged_are_named(model, tmp_path):
    copied = shutil.copytree(model, tmp_path / "model")
    file = copied / "params/model.safetensors"
    whole = file.read_bytes()
    for damaged in (
        b"",
        whole[:7],
        whole[:100],
        whole[:-5],
        whole + b"x",
        b"version https://git-lfs.github.com/spec/v1",
    ):
        file.write_bytes(damaged)
        with pytest.raises(UsageError, match="params/model.safetensors cannot be read as safetensors: .*; restore it"):
            sources.open_source(copied)
    file.write_bytes(whole)
    shutil.copy(file, file.with_name("other.safetensors"))
    with pytest.raises(UsageError, match="other.safetensors cannot be read .*, and so does model.safetensors"):
        sources.open_source(copied)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": None}, "describes no model: model is null"),
        ({"model": 5}, "describes no model: model is 5"),
        ({"model": {}}, "describes no model: model is {}"),
        ({"model": {"class": 5}}, "describes no model"),
        ({"model": {"class": "t2t.models.nothing.Config"}}, "there is no module t2t.models.nothing"),
        ({"model": {"class": "t2t.models.encoder_decoder.EncoderDecoderConfig"}}, "EncoderDecoderConfig needs embed"),
        ({"model": {"class": "t2t.config.Mesh"}}, r'model is {"class": "t2t.config.Mesh"}; it must be the config'),
        ({"start_id": "x"}, 'start_id is "x"; it must be a token, from 0 to 383, or null'),
        ({"start_id": -1}, "start_id is -1"),
        ({"start_id": 384}, "start_id is 384"),
        ({"start_id": True}, "start_id is true"),
        ({"ends_prompts": "no"}, 'ends_prompts is "no"'),
        ({"origin": 5}, "origin is 5"),
        ({"origin": {"kept": 5}}, 'origin is {"kept": 5}'),
        ({"origin": {"generation": {"forced_bos_token_id": "x"}}}, 'forced_bos_token_id of origin.generation is "x"'),
    ],
)
def test_a_config_that_describes_no_model_is_named(model, tmp_path, change, message):
    content = json.loads((model / "config.json").read_text())
    (tmp_path / "params").symlink_to(model / "params")
    (tmp_path / "config.json").write_text(json.dumps({**content, **change}))
    with pytest.raises(UsageError, match=re.escape(str(tmp_path / "config.json"))) as error:
        sources.open_source(tmp_path)
    assert message in str(error.value)


@pytest.mark.parametrize("size", [10**15, "384", -1, None])
def test_a_model_of_no_size_that_can_be_is_named(model, tmp_path, size):
    content = json.loads((model / "config.json").read_text())
    content["model"]["embed"]["vocab_size"] = size
    (tmp_path / "params").symlink_to(model / "params")
    (tmp_path / "config.json").write_text(json.dumps(content))
    with pytest.raises(UsageError, match="describes no model"):
        sources.open_source(tmp_path)


def test_json_too_deep_and_a_vocabulary_without_files_are_named(model, tmp_path):
    copied = shutil.copytree(model, tmp_path / "model")
    (copied / "vocabulary").mkdir()
    with pytest.raises(UsageError, match="model/vocabulary holds no vocabulary; restore it"):
        sources.open_source(copied)
    (copied / "config.json").write_text("[" * 100_000)
    with pytest.raises(UsageError, match="config.json is not JSON"):
        sources.open_source(copied)


def test_other_directories_are_refused(tmp_path):
    with pytest.raises(UsageError, match="is no directory"):
        sources.open_source(tmp_path / "nothing")
    with pytest.raises(UsageError, match=r"no config\.json"):
        sources.open_source(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(UsageError, match="of no known kind"):
        sources.open_source(tmp_path)


@pytest.mark.slow
def test_a_head_that_is_not_there_begins_fresh(run, params):
    untied = dataclasses.replace(tiny_run.model(), head=LanguageModelHead(tied=False))
    pieces = build.build(tiny_run.experiment(model=untied), ByteVocabulary())
    loaded = initialize.load_params(sources.open_source(run), pieces)["model"]
    assert loaded["head"]["kernel"].shape == (16, 384)
    del loaded["head"]
    assert_same(loaded, params["model"])


def test_other_shapes_are_refused_one_by_one(run):
    pieces = build.build(tiny_run.experiment(model=tiny_run.model(vocab_size=368)), ByteVocabulary())
    with pytest.raises(UsageError, match=r"embed/embedding: \(384, 16\) there, \(368, 16\) in this model"):
        initialize.load_params(sources.open_source(run), pieces)


def test_everything_that_does_not_fit_is_listed(run):
    model = tiny_run.model()
    deeper = {side: dataclasses.replace(getattr(model, side), num_layers=3) for side in ("encoder", "decoder")}
    pieces = build.build(tiny_run.experiment(model=dataclasses.replace(model, **deeper)), ByteVocabulary())
    with pytest.raises(UsageError) as error:
        initialize.load_params(sources.open_source(run), pieces)
    stacked = [path for path in trees.by_path(pieces.state.params["model"]) if "/layers_0/" in path]
    assert len(stacked) > 20 and "--init-partial" in str(error.value)
    assert all(f"{path}: (2, " in str(error.value) for path in stacked)


def test_what_fits_is_taken_when_asked_for_and_the_rest_is_listed(run, params, caplog):
    model = tiny_run.model()
    wider = dataclasses.replace(model.encoder, num_layers=3)
    untied = dataclasses.replace(model, encoder=wider, head=LanguageModelHead(tied=False))
    pieces = build.build(tiny_run.experiment(model=untied, init_partial=True), ByteVocabulary())
    with caplog.at_level("INFO", logger="t2t"):
        loaded = trees.by_path(initialize.load_params(sources.open_source(run), pieces)["model"])
    there, fresh = trees.by_path(params["model"]), trees.by_path(initialize.fresh_params(pieces)["model"])
    stacked = {path for path in loaded if path.startswith("encoder/layers_0/")}
    assert len(stacked) > 5
    for path, value in loaded.items():
        expected = fresh[path] if path in stacked or path == "head/kernel" else there[path]
        np.testing.assert_array_equal(value, expected, err_msg=path)
    assert f"{len(loaded) - len(stacked) - 1} taken, {len(stacked) + 1} fresh, 0 left out" in caplog.text
    for path in stacked:
        assert f"~ {path}: {tuple(there[path].shape)} there, {tuple(fresh[path].shape)} here: fresh" in caplog.text
    assert "+ head/kernel (16, 384): not there, fresh" in caplog.text


def test_another_vocabulary_is_refused_by_its_first_other_token(run):
    source = sources.open_source(run)
    initialize.check_same_vocabulary(source, ByteVocabulary())
    with pytest.raises(UsageError, match="id 260 is"):
        initialize.check_same_vocabulary(source, ByteVocabulary(sentinels=50))


def test_the_first_state_has_step_0(pieces, params):
    state = initialize.make_state(params, pieces)
    assert int(state.step) == 0 and state.frozen == {}
    assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(state))
    assert_same(state.params, params)
    assert jax.tree.map(lambda leaf: leaf.sharding, state) == pieces.shardings


def test_leaves_are_placed_where_they_are_wanted():
    value = sources._place(np.arange(6.0), jax.ShapeDtypeStruct((6,), jnp.float32))
    assert value.dtype == jnp.float32
    assert base.count_parameters(tiny_run.model()) == 15584


def test_a_vocabulary_that_is_not_understood_is_asked_for(run, caplog, tmp_path):
    source = dataclasses.replace(sources.open_source(run), vocabulary=tmp_path)
    with pytest.raises(UsageError, match=r"is not understood: .*holds no vocabulary.*with --vocabulary"):
        initialize.load_vocabulary(source)
    initialize.check_same_vocabulary(source, ByteVocabulary())
    assert "is not understood" in caplog.text and "nothing tells whether" in caplog.text
