"""Checkpoints: what is saved comes back, damage is refused by name, killed and failed saves harm nothing."""

import functools
import os
import pathlib
import random
import signal
import subprocess
import sys
import textwrap
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from t2t.train import checkpoint

DATA = {"lanes": [3, 5]}
CONFIG = {"name": "tiny"}


def make_state(value: float = 0.0):
    params = {"model": {"embed": jnp.full((6, 8), value), "norm": jnp.arange(8, dtype=jnp.bfloat16)}}
    return {"step": jnp.asarray(7, jnp.int32), "params": params, "opt_state": optax.adam(1e-3).init(params)}


def save(store: checkpoint.CheckpointStore, step: int, state=None, **metrics: float):
    store.save(step, state or make_state(float(step)), data=DATA, config=CONFIG, metrics=metrics)
    store.wait()


@pytest.fixture
def store(tmp_path: pathlib.Path):
    with checkpoint.CheckpointStore(tmp_path / "checkpoints") as opened:
        yield opened


def assert_same(left, right):
    assert jax.tree.structure(left) == jax.tree.structure(right)
    jax.tree.map(np.testing.assert_array_equal, left, right)


def test_everything_saved_comes_back(store):
    state = make_state(0.5)
    save(store, 7, state, loss=1.25)
    restored = store.restore(like=jax.eval_shape(lambda: state))
    assert_same(restored.state, state)
    assert (restored.step, restored.data, restored.config, restored.metrics) == (7, DATA, CONFIG, {"loss": 1.25})
    names = {path.name for path in store.path(7).iterdir()}
    assert {"state", "data.json", "config.json", "metrics.json", "MANIFEST.sha256"} <= names


def test_save_does_not_see_what_donated_buffers_become(store):
    @functools.partial(jax.jit, donate_argnums=0)
    def step(tree):
        return jax.tree.map(lambda x: x + 1, tree)

    state = step({"w": jnp.zeros((512, 512))})
    store.save(1, state, data=DATA, config=CONFIG)
    for _ in range(5):
        state = step(state)
    store.wait()
    restored = store.restore(like=jax.eval_shape(lambda: state)).state
    np.testing.assert_array_equal(restored["w"], np.ones((512, 512)))


@pytest.mark.multi_device
def test_restores_onto_another_mesh(store):
    def on(mesh: Mesh, spec: PartitionSpec):
        return NamedSharding(mesh, spec)

    devices = np.array(jax.devices())
    values = jnp.arange(64.0).reshape(8, 8)
    one = on(Mesh(devices.reshape(4, 2), ("data", "model")), PartitionSpec("data", "model"))
    other = on(Mesh(devices[:4].reshape(2, 2), ("data", "model")), PartitionSpec("model", None))
    save(store, 1, {"w": jax.device_put(values, one)})
    restored = store.restore(like={"w": jax.ShapeDtypeStruct((8, 8), jnp.float32, sharding=other)}).state["w"]
    assert restored.sharding == other
    np.testing.assert_array_equal(restored, values)
    single = store.restore(like={"w": jax.ShapeDtypeStruct((8, 8), jnp.float32)}).state["w"]
    assert len(single.sharding.device_set) == 1


def test_any_flipped_byte_is_refused_with_the_name_of_the_file(store):
    save(store, 1)
    save(store, 2)
    like = jax.eval_shape(make_state)
    for path in [path for path in store.path(2).rglob("*") if path.is_file() and path.stat().st_size]:
        whole = path.read_bytes()
        middle = len(whole) // 2
        path.write_bytes(whole[:middle] + bytes([whole[middle] ^ 4]) + whole[middle + 1 :])
        with pytest.raises(checkpoint.DamagedCheckpointError, match="was not read") as error:
            store.restore(like=like)
        assert str(path.relative_to(store.path(2))) in str(error.value)
        assert f"{store.path(1)} (t2t train --fallback goes back to it)" in str(error.value)
        path.write_bytes(whole)
    assert store.restore(like=like).step == 2


def test_falls_back_only_when_told_to(store):
    for step in (1, 2, 3):
        save(store, step)
    for step in (2, 3):
        (store.path(step) / "data.json").write_text("{}")
    like = jax.eval_shape(make_state)
    with pytest.raises(checkpoint.DamagedCheckpointError, match=r"data\.json"):
        store.restore(like=like)
    with pytest.raises(checkpoint.DamagedCheckpointError, match=r"data\.json"):
        store.restore(2, like=like)
    restored = store.restore(like=like, fallback=True)
    assert restored.step == 1
    assert_same(restored.state, make_state(1.0))
    store.discard_after(1)
    assert store.steps() == [1]
    assert (store.directory / "3.damaged").is_dir()


def test_no_way_back_says_so(store):
    save(store, 1)
    (store.path(1) / "data.json").unlink()
    with pytest.raises(checkpoint.DamagedCheckpointError, match="good copy of it; there is no earlier checkpoint"):
        store.restore(like=make_state(), fallback=True)


def test_other_trees_are_refused_path_by_path(store):
    save(store, 1)
    wanted = make_state()
    wanted["params"]["model"]["embed"] = jnp.zeros((9, 8))
    wanted["params"]["model"]["norm"] = jnp.zeros(8)
    wanted["params"]["model"]["head"] = jnp.zeros(2)
    del wanted["step"]
    with pytest.raises(checkpoint.TreeMismatchError) as error:
        store.restore(like=wanted)
    message = str(error.value)
    assert "params/model/embed: saved float32[6, 8], wanted float32[9, 8]" in message
    assert "params/model/norm: saved bfloat16[8], wanted float32[8]" in message
    assert "params/model/head: saved absent, wanted float32[2]" in message
    assert "step: saved int32[], wanted absent" in message


def test_a_part_can_be_read_alone(store):
    save(store, 1)
    like = {"params": jax.eval_shape(lambda: make_state()["params"])}
    restored = store.restore(like=like, subset=True).state
    assert_same(restored, {"params": make_state(1.0)["params"]})
    with pytest.raises(checkpoint.TreeMismatchError, match="opt_state/0/count"):
        store.restore(like=like)


def test_missing_checkpoints_are_errors(store):
    with pytest.raises(checkpoint.CheckpointError, match="no complete checkpoint"):
        store.restore(like=make_state())
    save(store, 3)
    with pytest.raises(checkpoint.CheckpointError, match=r"step 4 .* but of \[3\]"):
        store.restore(4, like=make_state())


def test_the_last_and_the_best_stay(tmp_path):
    best = checkpoint.Best(metric="task/loss", lower_is_better=True)
    with checkpoint.CheckpointStore(tmp_path, keep=2, best=best) as store:
        for step, loss in enumerate([3.0, 1.0, 2.0, 2.5, 1.5], start=1):
            save(store, step, **{"task/loss": loss})
        assert store.steps() == [2, 4, 5]
        assert store.best() == 2
        assert {path.name for path in tmp_path.iterdir()} == {"2", "4", "5"}


def test_every_so_many_steps_a_checkpoint_stays_for_ever(tmp_path):
    with checkpoint.CheckpointStore(tmp_path, keep=2, keep_every=3) as store:
        for step in range(1, 9):
            save(store, step)
        assert store.steps() == [3, 6, 7, 8]


def test_another_floating_point_type_is_given_when_asked_for(store):
    save(store, 1)
    written = make_state(1.0)
    wanted = jax.eval_shape(lambda: make_state())
    flip = {jnp.dtype(jnp.float32): jnp.bfloat16, jnp.dtype(jnp.bfloat16): jnp.float32}
    wanted = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, flip.get(leaf.dtype, leaf.dtype)), wanted)
    with pytest.raises(checkpoint.TreeMismatchError, match=r"saved bfloat16\[8\], wanted float32\[8\]"):
        store.restore(like=wanted)
    found = store.restore(like=wanted, cast=True).state
    assert_same(found, jax.tree.map(lambda value, leaf: value.astype(leaf.dtype), written, wanted))
    assert jax.tree.map(lambda leaf: leaf.dtype, found) == jax.tree.map(lambda leaf: leaf.dtype, wanted)


def test_integers_are_never_cast(store):
    save(store, 1)
    wanted = make_state() | {"step": jnp.float32(0)}
    with pytest.raises(checkpoint.TreeMismatchError, match=r"step: saved int32\[\], wanted float32\[\]"):
        store.restore(like=wanted, cast=True)


def test_zero_checkpoints_to_keep_are_refused(tmp_path):
    with pytest.raises(ValueError, match="keep=0"):
        checkpoint.CheckpointStore(tmp_path, keep=0)


def test_debris_is_removed_and_never_listed(store):
    save(store, 1)
    for name in ("2.partial", "3.partial.orbax-checkpoint-tmp", "1.deleted"):
        (store.directory / name / "state").mkdir(parents=True)
    (store.directory / "notes.txt").write_text("mine")
    assert store.steps() == [1]
    store.clean()
    assert {path.name for path in store.directory.iterdir()} == {"1", "notes.txt"}


def test_a_step_is_saved_again_and_never_missing(store):
    save(store, 1)
    save(store, 1, **{"task/loss": 2.0})
    assert store.metrics(1) == {"task/loss": 2.0}
    assert {path.name for path in store.directory.iterdir()} == {"1"}
    # A kill between the two renames of such a save leaves the first checkpoint aside.
    store.path(1).rename(store.directory / "1.replaced")
    (store.directory / "1.partial").mkdir()
    store.clean()
    store.verify(1)
    assert {path.name for path in store.directory.iterdir()} == {"1"}


def test_errors_of_the_writing_thread_surface(store, monkeypatch):
    save(store, 1)

    def full_disk(directory):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint.manifest, "write", full_disk)
    store.save(2, make_state(), data=DATA, config=CONFIG)
    with pytest.raises(checkpoint.CheckpointError, match="No space left on device") as error:
        while True:
            store.check()
            time.sleep(0.01)
    assert f"the last good checkpoint is {store.path(1)}" in str(error.value)
    assert {path.name for path in store.directory.iterdir()} == {"1"}
    monkeypatch.undo()
    save(store, 2)
    assert store.restore(like=jax.eval_shape(make_state)).step == 2


def test_a_place_that_cannot_be_written_is_a_clear_error(tmp_path):
    (tmp_path / "file").write_text("not a directory")
    with checkpoint.CheckpointStore(tmp_path / "file" / "checkpoints") as store:
        with pytest.raises(checkpoint.CheckpointError, match="could not be saved.*no checkpoint is there yet"):
            store.save(1, make_state(), data=DATA, config=CONFIG)


SCRIPT = textwrap.dedent("""
    import resource, sys
    import jax.numpy as jnp
    from t2t.train import checkpoint
    directory, mode = sys.argv[1:]
    with checkpoint.CheckpointStore(directory, keep=2) as store:
        store.clean()
        first = (store.latest() or 0) + 1
        if mode == "full":
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        for step in range(first, first + (1 if mode == "full" else 1_000)):
            state = {"w": jnp.arange(300_000.0) + step, "step": jnp.asarray(step)}
            store.save(step, state, data={"step": step}, config={})
            print(step, flush=True)
        store.wait()
""")


def run_script(directory: pathlib.Path, mode: str, **options) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", SCRIPT, str(directory), mode], text=True, **options)


def check_latest(directory: pathlib.Path) -> int:
    with checkpoint.CheckpointStore(directory) as store:
        like = {"w": jax.ShapeDtypeStruct((300_000,), jnp.float32), "step": jax.ShapeDtypeStruct((), jnp.int32)}
        restored = store.restore(like=like)
        np.testing.assert_array_equal(restored.state["w"], np.arange(300_000, dtype=np.float32) + restored.step)
        assert int(restored.state["step"]) == restored.data["step"] == restored.step
        return restored.step


def kill_many(directory: pathlib.Path, times: int):
    """Kills a process that does nothing but save, at random moments; each time the newest checkpoint must be whole."""
    draw = random.Random(0)
    done = 0
    for _ in range(times):
        with run_script(directory, "forever", stdout=subprocess.PIPE) as process:
            for _ in range(draw.randint(2, 4)):
                process.stdout.readline()
            time.sleep(draw.uniform(0, 0.3))
            process.send_signal(signal.SIGKILL)
        latest = check_latest(directory)
        assert latest > done
        done = latest


@pytest.mark.slow
def test_twenty_kills_leave_the_newest_checkpoint_whole(tmp_path):
    kill_many(tmp_path, 20)


@pytest.mark.nightly
def test_a_hundred_kills_leave_the_newest_checkpoint_whole(tmp_path):
    kill_many(tmp_path, 100)


@pytest.mark.slow
def test_a_full_disk_leaves_the_last_checkpoint_and_no_debris(tmp_path):
    with checkpoint.CheckpointStore(tmp_path) as store:
        state = {"w": jnp.arange(300_000.0) + 1, "step": jnp.asarray(1)}
        store.save(1, state, data={"step": 1}, config={})
    with run_script(tmp_path, "full", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        _, errors = process.communicate()
    assert process.returncode == 1
    last = errors.strip().splitlines()[-1]
    assert "CheckpointError: step 2 could not be saved" in last and "File too large" in last
    assert f"last good checkpoint is {os.path.join(tmp_path, '1')}" in last
    assert os.listdir(tmp_path) == ["1"]
    assert check_latest(tmp_path) == 1
