import os
import subprocess
import sys

import pytest

from t2t.data.host_tensorflow import tf


def test_tensorflow_sees_no_accelerator():
    assert tf.config.get_visible_devices("GPU") == []
    assert tf.config.get_visible_devices("TPU") == []
    assert tf.config.get_visible_devices("CPU")


@pytest.mark.slow
def test_importing_it_writes_nothing():
    command = [sys.executable, "-c", "from t2t.data.host_tensorflow import tf; tf.constant(1)"]
    environment = {k: v for k, v in os.environ.items() if k not in ("CUDA_VISIBLE_DEVICES", "TF_CPP_MIN_LOG_LEVEL")}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert (done.stdout, done.stderr) == ("", "")
