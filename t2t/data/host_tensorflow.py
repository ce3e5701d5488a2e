"""TensorFlow as the data code uses it: on the host's processor only, quietly.

TensorFlow reads text here and must never take the memory of the accelerator that JAX trains on. Import it from here.
"""

import os

from t2t import quiet

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def _stay_on_the_host() -> None:
    for kind in ("GPU", "TPU"):
        try:
            tf.config.set_visible_devices([], kind)
        except RuntimeError as error:  # somebody's TensorFlow program runs already
            if any(device.device_type == kind for device in tf.config.get_visible_devices()):
                raise RuntimeError(
                    f"TensorFlow took the {kind} before t2t.data was imported; import t2t.data first, or call "
                    f"tf.config.set_visible_devices([], '{kind}') at the start of your program."
                ) from error


with quiet.standard_error():
    import tensorflow as tf

    _stay_on_the_host()

__all__ = ["tf"]
