"""TensorFlow as the data code uses it: on the host's processor only, quietly.

TensorFlow reads text here and must never take the memory of the accelerator that JAX trains on. Import it from here.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf  # noqa: E402

for _kind in ("GPU", "TPU"):
    try:
        tf.config.set_visible_devices([], _kind)
    except RuntimeError as error:  # somebody's TensorFlow program runs already
        if any(device.device_type == _kind for device in tf.config.get_visible_devices()):
            raise RuntimeError(
                f"TensorFlow took the {_kind} before t2t.data was imported; import t2t.data first, or call "
                f"tf.config.set_visible_devices([], '{_kind}') at the start of your program."
            ) from error

__all__ = ["tf"]
