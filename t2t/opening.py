"""`t2t.load`: a model from a run, a checkpoint, a model directory, a Hugging Face directory, or a name of the Hub."""

import dataclasses
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import traverse_util

from t2t import api, heads
from t2t.models.base import Network
from t2t.vocabulary import Vocabulary

log = logging.getLogger(__name__)


def load(
    path: str | os.PathLike,
    *,
    head: heads.Head | None = None,
    ignore_attributes: Sequence[str] = (),
    dtype: Any = jnp.float32,
    role: str | None = None,
) -> api.Model:
    """The model of a run (its last checkpoint), a checkpoint, a model or a Hugging Face directory, or of the Hub.

    A Hugging Face model whose vocabulary is not understood has none; why, a warning says, and what needs one.

    Args:
        path: the directory, or the name of a repository of the Hub (google-t5/t5-small), downloaded by huggingface-hub.
        head: the head a Hugging Face model shall have instead of its own, `heads.BARE` for none; parameters it lacks
            are fresh.
        ignore_attributes: attributes of a Hugging Face config.json that are known to be without effect.
        dtype: of activations and matrix products; parameters are read as float32.
        role: which model of a run that trains a pair, generator or discriminator; None is the discriminator.

    Raises:
        UsageError: where the directory holds no parameters; attributes to ignore that it does not have.
        ValueError: for a Hugging Face directory that does not match its config; everything that does not is listed.
            For a head that the family does not have, and any head asked of a run, checkpoint or model. For a dtype of
            float16, in which models overflow.
    """
    if head is not None and role is not None:
        raise ValueError("head and role: a pair is trained by a run, which keeps its heads; give one of the two")
    if head is not None:
        return _load_with_head(path, head, dtype, ignore_attributes)
    model = open_lazily(path, ignore_attributes=ignore_attributes, role=role)
    unread = traverse_util.flatten_dict(model.params, sep="/")
    source = next(iter(unread.values())).source
    leaves = dict(source.leaves({name: leaf.placeholder for name, leaf in unread.items()}))
    return dataclasses.replace(model, params=traverse_util.unflatten_dict(leaves, sep="/"), dtype=dtype)


@dataclasses.dataclass(frozen=True)
class Unread:
    """A parameter that is read when NumPy asks for it."""

    source: Any
    path: str

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return tuple(self.source.shapes[self.path].shape)

    @property
    def placeholder(self) -> jax.ShapeDtypeStruct:
        """Its shape and the type it is read as."""
        return jax.ShapeDtypeStruct(self.shape, jnp.float32)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The parameter, for `numpy.asarray`."""
        del copy  # nobody else holds what was just read
        return np.asarray(next(value for _, value in self.source.leaves({self.path: self.placeholder})), dtype)


def open_lazily(
    path: str | os.PathLike, *, ignore_attributes: Sequence[str] = (), role: str | None = None
) -> api.Model:
    """The same model whose parameters are read when they are asked for: enough to export it, one after the other.

    Raises:
        UsageError, ValueError: as `load`.
    """
    from t2t.train import initialize, sources

    source = sources.open_source(path, ignore_attributes=ignore_attributes, role=role)
    about = _about(source.path, source.kind, source.config, source.origin)
    if source.kind == "Hugging Face":
        vocabulary, about = _published_vocabulary(source.vocabulary, about, rows=source.config.vocab_size)
    else:
        vocabulary = None if source.vocabulary is None else initialize.load_vocabulary(source)
    says_start = source.kind == "Hugging Face" or "start_id" in source.about
    leaves = {name: Unread(source, name) for name in source.shapes}
    wanted = Network(source.config).shapes_by_path()
    return api.Model(
        config=source.config,
        params=traverse_util.unflatten_dict({name: leaves[name] for name in wanted}, sep="/"),
        vocabulary=vocabulary,
        start_id=source.start_id if says_start else api.start_id(source.config, vocabulary),
        about=about,
    )


def _load_with_head(
    path: str | os.PathLike, head: heads.Head, dtype: Any, ignore_attributes: Sequence[str]
) -> api.Model:
    from t2t.hf import hub
    from t2t.hf import load as hf_load

    directory = hub.find(path)
    if "t2t" in hf_load.read_config(directory):
        raise ValueError(
            f"{directory} is a run, checkpoint or model of t2t, which keeps the head it was trained with: leave out "
            "head, or export it first (t2t export) and load that"
        )
    opened = hf_load.open_directory(directory, head=head, ignore_attributes=ignore_attributes)
    about = _about(directory, "Hugging Face", opened.config, opened.origin)
    vocabulary, about = _published_vocabulary(opened.vocabulary, about, rows=opened.config.vocab_size)
    return api.Model(
        config=opened.config,
        params=jax.tree.map(jnp.asarray, opened.params()),
        vocabulary=vocabulary,
        dtype=dtype,
        start_id=hf_load.start_id(directory, opened.config),
        about=about,
    )


def _published_vocabulary(
    path: Path | None, about: dict[str, Any], *, rows: int
) -> tuple[Vocabulary | None, dict[str, Any]]:
    """The vocabulary of a Hugging Face directory and what is known of the model: why there is none, if so."""
    if path is None:
        return None, about
    try:
        vocabulary = Vocabulary.load(path)
        if vocabulary.size > rows:
            raise ValueError(f"{path} has {vocabulary.size} ids, the model {rows} rows: it is that of another model")
        return vocabulary, about
    except (ValueError, OSError) as error:
        log.warning("the model opens without its vocabulary, which is not understood: %s", error)
        return None, about | {"no_vocabulary": str(error)}


def _about(path: Path, kind: str, config: Any, origin: Mapping[str, Any]) -> dict[str, Any]:
    """What a directory says of the training of its model, and what it has from Hugging Face files (`origin`)."""
    from t2t.hf import load as hf_load

    about: dict[str, Any] = {"path": str(path), "kind": kind, **({"origin": dict(origin)} if origin else {})}
    if kind == "Hugging Face":
        return about | {"ends_prompts": hf_load.ends_prompts(path, config)}
    if kind == "model":
        return about | {"ends_prompts": hf_load.read_config(path).get("ends_prompts", False)}
    from t2t.train import checkpoint

    store = checkpoint.CheckpointStore(path / "checkpoints" if kind == "run" else path.parent)
    step = store.latest() if kind == "run" else int(path.name)
    content = store.config(step)
    return about | {
        "step": step,
        "metrics": store.metrics(step),
        "experiment": content["experiment"],
        "t2t": content["t2t"],
    }
