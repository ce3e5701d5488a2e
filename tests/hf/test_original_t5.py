"""T5's original checkpoints as their libraries write them: read to the last parameter, under T5X's recorded numbers."""

import json
import re

import jax
import numpy as np
import orbax.checkpoint as ocp
import pytest
import tensorstore
from flax import serialization, traverse_util

import t2t
from t2t import cli
from t2t.families import t5, umt5
from t2t.hf import load, original_t5
from t2t.models.base import Network
from t2t.train import sources
from tests.hf import tiny
from tests.models import t5x_names, t5x_tiny

SIZES = {"num_layers": 3, "num_decoder_layers": 2, "d_model": 10, "num_heads": 3, "head_dim": 4, "d_ff": 14,
         "vocab_size": 40, "num_buckets": 8}  # fmt: skip
GATED = {"gated": True, "activation": "gelu_tanh", "tied": False}
CONFIGS = {"1.0": t5.t5(**SIZES), "1.1": t5.t5(**GATED, **SIZES)}


def as_t5x(params, *, scanned=False):
    """Our parameters by T5X's paths."""
    leaves = {path: np.asarray(leaf) for path, leaf in traverse_util.flatten_dict(params, sep="/").items()}
    arrays = {"token_embedder/embedding": leaves["embed/embedding"]}
    if "head/kernel" in leaves:
        arrays["decoder/logits_dense/kernel"] = leaves["head/kernel"]
    for path, leaf in leaves.items():
        side, _, rest = path.partition("/")
        if rest == "position/embedding":
            arrays[f"{side}/relpos_bias/rel_embedding"] = leaf.T
        elif rest == "final_norm/scale":
            arrays[f"{side}/{side}_norm/scale"] = leaf
        elif rest.startswith("layers_0/"):
            name = t5x_name(side, rest.removeprefix("layers_0/"), is_gated="head/kernel" in leaves)
            layers = [layer_as_t5x(name, layer) for layer in leaf]
            if scanned:
                arrays[f"{side}/{side}/{name}"] = np.stack(layers, axis=1)
            else:
                arrays |= {f"{side}/layers_{i}/{name}": layer for i, layer in enumerate(layers)}
    return arrays


def t5x_name(side, name, *, is_gated):
    own = "attention" if side == "encoder" else "self_attention"
    module, *rest = name.split("/")
    module = {"attention": own, "cross_attention": "encoder_decoder_attention", "feed_forward": "mlp",
              "attention_norm": f"pre_{own}_layer_norm", "cross_attention_norm": "pre_cross_attention_layer_norm",
              "feed_forward_norm": "pre_mlp_layer_norm"}[module]  # fmt: skip
    if module == "mlp":
        rest[0] = {"down": "wo", "gate": "wi_0", "up": "wi_1" if is_gated else "wi"}[rest[0]]
    return "/".join((module, *rest))


def layer_as_t5x(name, layer):
    if name.endswith("out/kernel"):
        return layer.reshape(-1, layer.shape[-1])
    return layer.reshape(layer.shape[0], -1) if layer.ndim == 3 else layer


def as_mesh(params):
    """Our parameters by Mesh TensorFlow's names."""
    arrays = {}
    for path, array in as_t5x(params).items():
        match = re.fullmatch(r"(encoder|decoder)/layers_(\d+)/(.+)", path)
        if match is None:
            side = path.partition("/")[0]
            bias = f"{side}/block_000/layer_000/SelfAttention/relative_attention_bias"
            name = {"token_embedder/embedding": "shared/embedding",
                    "decoder/logits_dense/kernel": "decoder/logits/kernel",
                    f"{side}/{side}_norm/scale": f"{side}/rms_norm/scale",
                    f"{side}/relpos_bias/rel_embedding": bias}[path]  # fmt: skip
            arrays[name] = array
            continue
        side, layer, rest = match.groups()
        last = 1 if side == "encoder" else 2
        name = {"query": "q", "key": "k", "value": "v", "out": "o"}.get(rest.split("/")[1])
        if rest.startswith("mlp/"):
            place = f"layer_{last:03}/DenseReluDense/{rest.split('/')[1]}/kernel"
        elif rest.endswith("scale"):
            place = f"layer_{1 if 'cross' in rest else last if 'mlp' in rest else 0:03}/layer_norm/scale"
        else:
            place = (
                f"layer_001/EncDecAttention/{name}" if "encoder_decoder" in rest else f"layer_000/SelfAttention/{name}"
            )
        arrays[f"{side}/block_{int(layer):03}/{place}"] = array
    return arrays


def write_t5x(directory, arrays):
    """As `t5x.checkpoints.Checkpointer`: a msgpack tree whose large arrays stand beside it as zarr."""
    tree = {}
    for path, array in arrays.items():
        folder = f"target.{path.replace('/', '.')}"
        spec = {"driver": "zarr", "kvstore": {"driver": "file", "path": str(directory / folder)}}
        store = tensorstore.open(spec, create=True, dtype=tensorstore.dtype(array.dtype), shape=array.shape).result()
        store.write(array).result()
        written = {"driver": "gcs", "bucket": "t5-data", "path": f"pretrained/{folder}"}
        tree[path] = {"driver": "zarr", "kvstore": written, "metadata": {"shape": list(array.shape)}}
    tree["decoder/decoder_norm/scale"] = arrays["decoder/decoder_norm/scale"]  # small ones stand in the tree
    content = {"target": traverse_util.unflatten_dict(tree, sep="/"), "state": {"step": np.int32(7)}}
    (directory / "checkpoint").write_bytes(serialization.msgpack_serialize({"version": 3, "optimizer": content}))


def write_orbax(directory, arrays, *, use_ocdbt=True):
    tree = {"target": traverse_util.unflatten_dict(arrays, sep="/"), "state": {"step": np.int32(7)}}
    handler = ocp.PyTreeCheckpointHandler(use_ocdbt=use_ocdbt, use_zarr3=False)
    ocp.Checkpointer(handler).save(directory / "state", tree)


def write_tensorflow(directory, arrays):
    tf = pytest.importorskip("tensorflow")
    arrays = arrays | {"global_step": np.int64(7), "encoder/block_000/layer_000/SelfAttention/q_slot_vr": np.zeros(3)}
    (directory / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-7"\n')
    tf.raw_ops.SaveV2(
        prefix=str(directory / "model.ckpt-7"),
        tensor_names=list(arrays),
        shape_and_slices=[""] * len(arrays),
        tensors=[tf.constant(array) for array in arrays.values()],
    )


WRITERS = {
    "t5x": lambda directory, params: write_t5x(directory, as_t5x(params)),
    "scanned": lambda directory, params: write_t5x(directory, as_t5x(params, scanned=True)),
    "ocdbt": lambda directory, params: write_orbax(directory, as_t5x(params)),
    "zarr": lambda directory, params: write_orbax(directory, as_t5x(params), use_ocdbt=False),
    "tensorflow": lambda directory, params: write_tensorflow(directory, as_mesh(params)),
}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("name", CONFIGS)
def test_every_parameter_and_size_is_read(name, writer, tmp_path):
    params = tiny.params(CONFIGS[name])
    WRITERS[writer](tmp_path, params)
    opened = load.open_directory(tmp_path)
    # Dropout and the distance of the last bucket are no shapes: those of the published models.
    assert opened.config == CONFIGS[name]
    tiny.assert_trees_equal(opened.params(), params)


def test_the_recorded_model_computes_what_t5x_computed(tmp_path):
    recorded = t5x_tiny.recorded("tiny_t5_1_0.npz")
    write_t5x(tmp_path, t5x_names.arrays_under(recorded, "param"))
    opened = load.open_directory(tmp_path)
    batch = t5x_tiny.batch(recorded, "batch")
    with jax.default_matmul_precision("highest"):
        output = jax.jit(Network(opened.config).apply)(opened.params(), batch)
    real = batch["decoder_segment_ids"] > 0
    np.testing.assert_allclose(output.logits[real], recorded["logits"][real], atol=1e-4)


def test_a_table_of_positions_in_every_layer_is_umt5(tmp_path):
    config = umt5.umt5(**GATED, **SIZES)
    params = tiny.params(config)
    leaves = traverse_util.flatten_dict(params, sep="/")
    others = {path: leaf for path, leaf in leaves.items() if "position" not in path}
    arrays = as_t5x(traverse_util.unflatten_dict(others, sep="/"))
    for side in ("encoder", "decoder"):
        tables = params[side]["layers_0"]["position"]["embedding"]
        arrays |= {f"{side}/layers_{i}/relpos_bias/rel_embedding": table.T for i, table in enumerate(tables)}
    write_t5x(tmp_path, arrays)
    opened = load.open_directory(tmp_path)
    assert opened.config == config
    tiny.assert_trees_equal(opened.params(), params)


def test_import_makes_a_model_that_loads_with_a_vocabulary_given_beside(tmp_path, capsys):
    (tmp_path / "theirs").mkdir()
    config = t5.t5(**{**SIZES, "vocab_size": 384})
    WRITERS["t5x"](tmp_path / "theirs", tiny.params(config))
    t2t.vocabulary.ByteVocabulary().save(tmp_path / "bytes")
    arguments = ["import", str(tmp_path / "theirs"), str(tmp_path / "ours"), "--vocabulary", str(tmp_path / "bytes")]
    assert cli.main(arguments) == 0
    model = t2t.load(tmp_path / "ours")
    assert (model.config, model.start_id) == (config, 0)
    assert model.vocabulary.size == t2t.vocabulary.ByteVocabulary().size
    assert t2t.load(tmp_path / "theirs").config == config
    (tmp_path / "small").mkdir()
    WRITERS["t5x"](tmp_path / "small", tiny.params(CONFIGS["1.0"]))
    arguments[1:3] = [str(tmp_path / "small"), str(tmp_path / "other")]
    assert cli.main(arguments) == 2
    assert "it is the vocabulary of another model" in capsys.readouterr().err


def test_what_is_no_t5_or_is_damaged_says_so(tmp_path):
    arrays = as_t5x(tiny.params(CONFIGS["1.0"]))
    for name in ("decoder", "odd", "damaged"):
        (tmp_path / name).mkdir()
    write_t5x(tmp_path / "decoder", {path: array for path, array in arrays.items() if not path.startswith("encoder")})
    with pytest.raises(ValueError, match="no T5 with an encoder and a decoder"):
        load.open_directory(tmp_path / "decoder")
    write_t5x(tmp_path / "odd", arrays | {"encoder/layers_0/adapter/kernel": np.ones((2, 3), np.float32)})
    with pytest.raises(ValueError, match="without a place in the model: target.encoder.layers_0.adapter.kernel"):
        load.open_directory(tmp_path / "odd")
    write_t5x(tmp_path / "damaged", arrays)
    content = (tmp_path / "damaged" / "checkpoint").read_bytes()
    (tmp_path / "damaged" / "checkpoint").write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="checkpoint cannot be read"):
        original_t5.open_tensors(tmp_path / "damaged")


def test_a_config_json_beside_goes_before_what_the_shapes_say(tmp_path):
    """UL2's activation is no shape; Orbax's folder is named as that of checkpoints of t2t."""
    params = tiny.params(CONFIGS["1.1"])
    write_orbax(tmp_path, as_t5x(params))
    (tmp_path / "config.json").write_text(
        json.dumps(original_t5.config(tmp_path) | {"feed_forward_proj": "gated-silu"})
    )
    opened = sources.open_source(tmp_path)
    assert (opened.kind, opened.config) == ("Hugging Face", t5.t5(**{**GATED, "activation": "silu"}, **SIZES))


def test_trees_and_indices_of_others_are_no_t5(tmp_path):
    (tmp_path / "vectors.index").write_bytes(b"")
    handler = ocp.PyTreeCheckpointHandler()
    ocp.Checkpointer(handler).save(tmp_path / "state", {"params": {"model": np.ones(3)}})
    assert not original_t5.holds(tmp_path)
