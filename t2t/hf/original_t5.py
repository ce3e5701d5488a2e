"""T5's original checkpoints, T5X's and Mesh TensorFlow's, by the names of transformers.

Neither holds a config.json: its sizes follow from the shapes, and what shapes do not tell is that of the published
models (see `config`). Optimizer states are left out.

    T5X                                                  transformers
    target.encoder.layers_0.attention.query.kernel       encoder.block.0.layer.0.SelfAttention.q.weight
    target.encoder.encoder.attention.query.kernel        the same of all layers, along the second axis (scanned)
    Mesh TensorFlow
    encoder/block_000/layer_000/SelfAttention/q          encoder.block.0.layer.0.SelfAttention.q.weight

Reference: `t5x/examples/t5/network.py` and `scalable_t5/network.py`; `mesh_tensorflow/transformer`; Hugging Face's
`convert_t5x_checkpoint_to_flax.py` and `modeling_t5.load_tf_weights_in_t5` for the same correspondence.
"""

import collections
import dataclasses
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from t2t.hf import array_files, torch_files

holds = array_files.find
"""The file that says what a directory holds, where it is such a checkpoint."""


@dataclasses.dataclass(frozen=True)
class View:
    """An array of a checkpoint, or one layer of it, in the form that transformers has."""

    array: Any
    form: str = ""
    """"in" and "out" for kernels that read and write the stream, "T" for tables, "" for what stays as it is."""
    layer: int | None = None
    """Of an array of all layers, along its second axis."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape as transformers has it."""
        shape = list(self.array.shape)
        if self.layer is not None:
            del shape[1]
        if self.form == "in":
            shape = [int(np.prod(shape[1:])), shape[0]]
        elif self.form == "out":
            shape = [shape[-1], int(np.prod(shape[:-1]))]
        return tuple(reversed(shape)) if self.form == "T" else tuple(shape)

    @property
    def code(self) -> str:
        """The type it is stored in, as safetensors names it."""
        dtype = self.array.dtype
        return torch_files.code_of(np.dtype(getattr(dtype, "numpy_dtype", dtype)))

    def read(self) -> np.ndarray:
        """The array as transformers has it."""
        value = np.asarray(self.array if self.layer is None else self.array[:, self.layer])
        if self.form in ("in", "out"):
            value = value.reshape((value.shape[0], -1) if self.form == "in" else (-1, value.shape[-1]))
        return value.T if self.form else value


def open_tensors(directory: Path) -> dict[str, View]:
    """The parameters of a checkpoint by transformers' names; what has no such name keeps its own.

    Raises:
        ValueError: the checkpoint is damaged, or not of an encoder-decoder.
    """
    file = array_files.find(directory)
    arrays = array_files.open_arrays(file)
    is_t5x = file.name in (array_files.MSGPACK, array_files.METADATA)
    found = dict(_of_t5x(arrays) if is_t5x else _of_mesh(arrays))
    needed = ["shared.weight", *(_QUERY.format(side) for side in SIDES), *(_BIAS.format(side, 0) for side in SIDES)]
    needed.append(_WI.format("_0" if _WI.format("_0") in found else ""))
    if lacking := [name for name in needed if name not in found]:
        raise ValueError(
            f"{directory} is no T5 with an encoder and a decoder: nothing in it is {', '.join(lacking)}. It holds "
            f"{', '.join(sorted(arrays)[:4])} ..."
        )
    return found


def config(directory: Path) -> dict[str, Any]:
    """The config.json of transformers that a checkpoint means, by its shapes.

    They do not tell the activation, which is T5's: ReLU, or tanh-GELU where there is a gate (UL2's SiLU is not told);
    the distance of the last bucket, 128; and the dropout, 0.1. A config.json in the directory goes before this.
    """
    found = open_tensors(directory)
    shapes = {name: view.shape for name, view in found.items()}
    vocab_size, d_model = shapes["shared.weight"]
    buckets, num_heads = shapes[_BIAS.format("encoder", 0)]
    is_gated = _WI.format("_0") in shapes
    layers = collections.Counter(match[1] for match in map(_NORM.fullmatch, shapes) if match)
    return {
        "model_type": "umt5" if _BIAS.format("encoder", 1) in shapes else "t5",
        "architectures": ["T5ForConditionalGeneration"],
        "vocab_size": vocab_size,
        "d_model": d_model,
        "d_kv": shapes[_QUERY.format("encoder")][0] // num_heads,
        "d_ff": shapes[_WI.format("_0" if is_gated else "")][0],
        "num_layers": layers["encoder"],
        "num_decoder_layers": layers["decoder"],
        "num_heads": num_heads,
        "relative_attention_num_buckets": buckets,
        "feed_forward_proj": "gated-gelu" if is_gated else "relu",
        "tie_word_embeddings": "lm_head.weight" not in shapes,
        "is_encoder_decoder": True,
        "decoder_start_token_id": 0,
        "pad_token_id": 0,
        "eos_token_id": 1,
    }


SIDES = ("encoder", "decoder")
_QUERY = "{}.block.0.layer.0.SelfAttention.q.weight"
_BIAS = "{}.block.{}.layer.0.SelfAttention.relative_attention_bias.weight"
_WI = "encoder.block.0.layer.1.DenseReluDense.wi{}.weight"
_NORM = re.compile(r"(encoder|decoder)\.block\.\d+\.layer\.0\.layer_norm\.weight")
_LAYER = re.compile(r"(encoder|decoder)\.(?:layers_(\d+)|\1)\.(.+)")
_ATTENTION = {"query": "q", "key": "k", "value": "v", "out": "o"}
_ATTENTIONS = {"attention": "0.SelfAttention", "self_attention": "0.SelfAttention",
               "encoder_decoder_attention": "1.EncDecAttention"}  # fmt: skip
_NORMS = {"pre_attention_layer_norm": 0, "pre_self_attention_layer_norm": 0, "pre_cross_attention_layer_norm": 1}
_WHOLE = {
    "token_embedder.embedding": ("shared.weight", ""),
    "decoder.logits_dense.kernel": ("lm_head.weight", "in"),
    **{f"{side}.{side}_norm.scale": (f"{side}.final_layer_norm.weight", "") for side in SIDES},
    **{f"{side}.relpos_bias.rel_embedding": (_BIAS.format(side, 0), "T") for side in SIDES},
}
"""Name without `target.` -> transformers' name and form, of what is no part of a layer."""


def _of_t5x(arrays: Mapping[str, Any]) -> Iterator[tuple[str, View]]:
    for full, array in arrays.items():
        root, _, name = full.partition(".")
        if root != "target":
            continue  # the state of the optimizer, the step
        if name in _WHOLE:
            theirs, form = _WHOLE[name]
            yield theirs, View(array, form)
            continue
        match = _LAYER.fullmatch(name)
        part = _part(match[1], match[3]) if match else None
        if part is None:
            yield full, View(array)
        elif match[2]:
            yield f"{match[1]}.block.{match[2]}.layer.{part[0]}", View(array, part[1])
        else:
            for layer in range(array.shape[1]):
                yield f"{match[1]}.block.{layer}.layer.{part[0]}", View(array, part[1], layer)


def _part(side: str, name: str) -> tuple[str, str] | None:
    """Transformers' name and the form of a part of a layer, or None where there is none such."""
    feed_forward = 1 if side == "encoder" else 2
    if name == "relpos_bias.rel_embedding":
        return "0.SelfAttention.relative_attention_bias.weight", "T"
    module, _, rest = name.partition(".")
    if rest == "scale" and module in {*_NORMS, "pre_mlp_layer_norm"}:
        return f"{_NORMS.get(module, feed_forward)}.layer_norm.weight", ""
    inner, _, kind = rest.partition(".")
    if kind == "kernel" and module in _ATTENTIONS and inner in _ATTENTION:
        return f"{_ATTENTIONS[module]}.{_ATTENTION[inner]}.weight", "out" if inner == "out" else "in"
    if kind == "kernel" and module == "mlp" and re.fullmatch(r"wi(_[01])?|wo", inner):
        return f"{feed_forward}.DenseReluDense.{inner}.weight", "out" if inner == "wo" else "in"
    return None


_SKIPPED = re.compile(r".*_slot_\w+|global_step|.*/adam_[mv]")
_MESH = (
    (re.compile(r"(encoder|decoder)/block_0*(\d+)/layer_0*(\d+)/(.+)"), r"\1.block.\2.layer.\3.\4"),
    (re.compile(r"(encoder|decoder)/(?:rms_norm|final_layer_norm)/scale"), r"\1.final_layer_norm.weight"),
    (re.compile(r"(.+)\.(?:rms_norm|layer_norm)/scale"), r"\1.layer_norm.weight"),
    (re.compile(r"(.+\.(?:SelfAttention|EncDecAttention))/(\w+)"), r"\1.\2.weight"),
    (re.compile(r"(.+\.DenseReluDense)/(\w+)/kernel"), r"\1.\2.weight"),
    (re.compile(r"shared/embedding"), "shared.weight"),
    (re.compile(r"decoder/logits/kernel"), "lm_head.weight"),
)
"""Pattern -> replacement, one after the other."""


def _of_mesh(arrays: Mapping[str, Any]) -> Iterator[tuple[str, View]]:
    for name, array in arrays.items():
        if _SKIPPED.fullmatch(name):
            continue
        theirs = name
        for pattern, replacement in _MESH:
            match = pattern.fullmatch(theirs)
            theirs = match.expand(replacement) if match else theirs
        is_matrix = len(array.shape) == 2 and theirs != "shared.weight"
        yield theirs, View(array, "T" if is_matrix else "")
