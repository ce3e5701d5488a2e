import ast
import functools
import os
import pathlib
import subprocess
import sys
import types

import pytest

from t2t.data import host_tensorflow

PROGRAM = """
import os
import tensorflow as tf
from tensorflow.python.eager import context

state = context.context()
state._initialize_physical_devices()
for kind in ("GPU", "TPU"):
    device = context.PhysicalDevice(name=f"/physical_device:{kind}:0", device_type=kind)
    state._physical_devices.append(device)
    state._visible_device_list.append(device)
    assert tf.config.get_visible_devices(kind) == [device]
before = dict(os.environ)

from t2t.data import host_tensorflow

assert state._context_handle is None, "an operation came before the devices were hidden"
for kind in ("GPU", "TPU"):
    assert len(tf.config.list_physical_devices(kind)) == 1
    assert host_tensorflow.tf.config.get_visible_devices(kind) == [], kind
assert len(tf.config.get_visible_devices("CPU")) == 1
changed = {name for name in {*before, *os.environ} if before.get(name) != os.environ.get(name)}
assert changed <= {"TF_CPP_MIN_LOG_LEVEL"}, changed
assert float(tf.constant(2.0) + 1) == 3.0
"""


@pytest.mark.slow
def test_accelerators_are_hidden_before_the_first_operation_and_jax_settings_stay():
    """Of a TensorFlow that believes in a GPU and a TPU, whatever this machine has."""
    given = {"CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu", "XLA_PYTHON_CLIENT_MEM_FRACTION": "0.9"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=os.environ | given, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kind", ["GPU", "TPU"])
def test_an_accelerator_that_tensorflow_has_taken_already_is_an_error(kind, monkeypatch):
    def too_late(devices, device_type):
        raise RuntimeError("Visible devices cannot be modified after being initialized")

    visible = [types.SimpleNamespace(device_type="CPU")]
    monkeypatch.setattr(host_tensorflow.tf.config, "set_visible_devices", too_late)
    monkeypatch.setattr(host_tensorflow.tf.config, "get_visible_devices", lambda: visible)
    host_tensorflow._stay_on_the_host()
    visible.append(types.SimpleNamespace(device_type=kind))
    with pytest.raises(RuntimeError, match=f"TensorFlow took the {kind} before t2t.data was imported"):
        host_tensorflow._stay_on_the_host()


@pytest.mark.slow
def test_importing_it_writes_nothing():
    command = [sys.executable, "-c", "from t2t.data.host_tensorflow import tf; tf.constant(1)"]
    environment = {k: v for k, v in os.environ.items() if k not in ("CUDA_VISIBLE_DEVICES", "TF_CPP_MIN_LOG_LEVEL")}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert (done.stdout, done.stderr) == ("", "")


ROOT = pathlib.Path(__file__).parents[2]
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for folder in ("t2t/data", "tasks")
    for path in sorted((ROOT / folder).rglob("*.py"))
]


@functools.cache
def imports(module):
    """What a module of ours imports at its top, in order; nothing of others."""
    path = ROOT.joinpath(*module.split(".")).with_suffix(".py")
    names = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body if path.is_file() else ():
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return names


def bringer(module, seen):
    """The first import, followed from module to module, that brings TensorFlow; None if none does."""
    if module in seen:
        return None
    seen.add(module)
    for name in imports(module):
        if name == "t2t.data.host_tensorflow" or name.partition(".")[0] in ("seqio", "tensorflow"):
            return f"{module} imports {name}"
        if found := bringer(name, seen):
            return found
    return None


def test_whichever_module_is_imported_first_tensorflow_comes_with_its_settings():
    found = {module: bringer(module, set()) for module in MODULES if module != "t2t.data.host_tensorflow"}
    assert sum(found[module] is not None for module in found) > 30
    wrong = {how for how in found.values() if how and not how.endswith("imports t2t.data.host_tensorflow")}
    assert not wrong, f"{wrong}: import t2t.data.host_tensorflow before it"
