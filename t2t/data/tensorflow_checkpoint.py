"""The arrays of a TensorFlow checkpoint by name, each read when NumPy asks for it."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from t2t.data.host_tensorflow import tf


@dataclasses.dataclass(frozen=True)
class Variable:
    """An array of a TensorFlow checkpoint."""

    reader: Any
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The array, for `numpy.asarray`."""
        del copy  # nobody else holds what was just read
        return np.asarray(self.reader.get_tensor(self.name), dtype)


def open_arrays(prefix: Path) -> dict[str, Variable]:
    """The arrays of a checkpoint by name.

    Args:
        prefix: of its files, `model.ckpt-N`.

    Raises:
        ValueError: it cannot be read.
    """
    try:
        reader = tf.train.load_checkpoint(str(prefix))
    except (tf.errors.OpError, RuntimeError) as error:
        raise ValueError(str(error)) from error
    shapes, dtypes = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    return {
        name: Variable(reader, name, tuple(shape), np.dtype(dtypes[name].as_numpy_dtype))
        for name, shape in shapes.items()
    }
