import subprocess
import sys

from t2t.data.host_tensorflow import tf


def test_tensorflow_sees_no_accelerator():
    assert tf.config.get_visible_devices("GPU") == []
    assert tf.config.get_visible_devices("TPU") == []
    assert tf.config.get_visible_devices("CPU")


def test_importing_it_writes_nothing():
    command = [sys.executable, "-c", "import t2t.data.host_tensorflow"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
