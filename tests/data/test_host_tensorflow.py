import os
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
