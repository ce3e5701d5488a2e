"""What nobody can ask of a Hugging Face directory, and what no config.json can mean, is refused with the reason."""

import json
import shutil

import jax.numpy as jnp
import numpy as np
import pytest

import t2t
from t2t import api, heads
from t2t.errors import UsageError
from t2t.hf import export, load
from tests.hf import tiny


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    directory = tmp_path_factory.mktemp("exported")
    export.export(directory, config=tiny.T5, params=tiny.params(tiny.T5))
    return directory


@pytest.fixture
def theirs(exported, tmp_path):
    return shutil.copytree(exported, tmp_path / "theirs")


def test_a_head_that_the_family_has_not(theirs):
    with pytest.raises(UsageError, match=r"T5 has no head MaskedLM.*possible are"):
        load.open_directory(theirs, head=heads.MaskedLM())


@pytest.mark.parametrize("name", ["drop", "fresh", "ignore_attributes"])
def test_one_string_is_no_list_of_them(theirs, name):
    with pytest.raises(UsageError, match=f"{name} is the string 'hidden'; give a list"):
        load.open_directory(theirs, **{name: "hidden"})


def test_types_that_nothing_is_computed_in(theirs):
    with pytest.raises(ValueError, match="dtype is 'int3'; possible are float32, bfloat16"):
        t2t.load(theirs, dtype="int3")
    for dtype in ("int8", None, bool, "float8_e4m3fn"):
        with pytest.raises(ValueError, match="dtype is .*; possible are"):
            api.Model(config=tiny.T5, params={}, dtype=dtype)
    for dtype in ("bfloat16", jnp.bfloat16, np.dtype(np.float64)):
        assert api.Model(config=tiny.T5, params={}, dtype=dtype).network.dtype == dtype


@pytest.mark.parametrize("token", [-5, 11, 10**7, True])
def test_a_start_that_is_no_token(theirs, token):
    config = json.loads((theirs / "config.json").read_text())
    (theirs / "generation_config.json").unlink()
    (theirs / "config.json").write_text(json.dumps({**config, "decoder_start_token_id": token}))
    with pytest.raises(UsageError, match=rf"config.json: decoder_start_token_id is {json.dumps(token)}; .* 0 to 10"):
        t2t.load(theirs)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"vocab_size": 10**15}, "vocab_size is 1000000000000000; it must be at most 1000000000"),
        ({"num_layers": 10**6}, "num_layers is 1000000; it must be at most 10000"),
        ({"layer_norm_epsilon": float("inf")}, "layer_norm_epsilon is Infinity; it must be finite"),
        ({"layer_norm_epsilon": float("nan")}, "layer_norm_epsilon is NaN; it must be finite"),
        ({"layer_norm_epsilon": -1.0}, "eps = -1.0: must be positive and finite"),
    ],
)
def test_numbers_that_no_model_has(theirs, attributes, message):
    config = json.loads((theirs / "config.json").read_text())
    (theirs / "config.json").write_text(json.dumps({**config, **attributes}))
    with pytest.raises(UsageError, match=message):
        load.open_directory(theirs)


def test_a_config_json_that_cannot_be_read(theirs):
    (theirs / "config.json").write_text("[" * 100_000)
    with pytest.raises(UsageError, match="config.json is not JSON"):
        t2t.load(theirs)
    (theirs / "config.json").unlink()
    (theirs / "config.json").mkdir()
    with pytest.raises(UsageError, match="Is a directory"):
        load.open_directory(theirs)
