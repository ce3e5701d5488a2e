"""`t2t import`: a Hugging Face directory becomes a model directory that every command reads; `t2t export --verify`."""

import json
import subprocess
import sys
import time

import jax
import numpy as np
import pytest
import safetensors.numpy

import t2t
from t2t import cli
from t2t import vocabulary as vocabularies
from t2t.families import t5
from t2t.hf import export, files
from tests.hf import tiny

BYTES = vocabularies.ByteVocabulary()
MODEL = t5.t5(num_layers=2, d_model=12, num_heads=3, head_dim=5, d_ff=7, vocab_size=384)


@pytest.fixture
def theirs(tmp_path):
    export.export(tmp_path / "theirs", config=MODEL, params=tiny.params(MODEL), vocabulary=BYTES)
    return tmp_path / "theirs"


def test_an_imported_model_is_the_model(theirs, tmp_path, capsys):
    ours = tmp_path / "ours"
    assert cli.main(["import", str(theirs), str(ours)]) == 0
    assert "params/model.safetensors" in capsys.readouterr().out
    left, right = t2t.load(theirs), t2t.load(ours)
    assert (left.config, left.vocabulary, left.start_id) == (right.config, right.vocabulary, right.start_id)
    jax.tree.map(np.testing.assert_array_equal, left.params, right.params)
    assert cli.main(["export", str(ours), str(tmp_path / "again")]) == 0
    assert (tmp_path / "again" / files.SINGLE).read_bytes() == (theirs / files.SINGLE).read_bytes()
    assert cli.main(["import", str(theirs), str(ours)]) == 2
    assert "--overwrite" in capsys.readouterr().err


def test_the_start_of_a_decoder_survives(tmp_path):
    tiny_gpt2 = tiny.GPT2
    for bare in (True, False):
        export.export(
            tmp_path / f"theirs{bare}",
            config=tiny_gpt2.__class__(**{**vars(tiny_gpt2), "embed": _wide(tiny_gpt2.embed)}),
            params=tiny.params(tiny_gpt2.__class__(**{**vars(tiny_gpt2), "embed": _wide(tiny_gpt2.embed)})),
            vocabulary=BYTES,
            bare_prompts=bare,
        )
        assert cli.main(["import", str(tmp_path / f"theirs{bare}"), str(tmp_path / f"ours{bare}")]) == 0
        assert t2t.load(tmp_path / f"ours{bare}").start_id == (None if bare else 0)


def _wide(embed):
    return embed.__class__(**{**vars(embed), "vocab_size": 384})


def test_what_is_left_out_and_what_is_fresh_is_named(tmp_path, capsys):
    params = tiny.params(tiny.PRETRAINING)
    export.export(tmp_path / "theirs", config=tiny.PRETRAINING, params=params)
    assert cli.main(["import", str(tmp_path / "theirs"), str(tmp_path / "ours"), "--head", "masked"]) == 0
    assert "left out: bert.pooler.dense.bias" in capsys.readouterr().out
    assert t2t.load(tmp_path / "ours").config == tiny.MASKED
    config = json.loads((tmp_path / "theirs" / "config.json").read_text())
    (tmp_path / "theirs" / "config.json").write_text(json.dumps({**config, "strange": 1}))
    assert cli.main(["import", str(tmp_path / "theirs"), str(tmp_path / "other")]) == 1
    assert "unknown attributes strange=1" in capsys.readouterr().err


def _files(directory):
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def _add_pieces(file, number):
    definition = json.loads(file.read_text())
    definition["model"]["vocab"] |= {f"added{i}": 384 + i for i in range(number)}
    file.write_text(json.dumps(definition))


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"generation_config.json": "{"}, "is not JSON"),
        ({"tokenizer.json": "{"}, "the vocabulary is not understood"),
        ({"more ids": 16}, "has 400 ids, the model 384 rows: it is the vocabulary of another model"),
        ({"tensor": 1e300}, "holds 1e+300, which float32 has no number for"),
    ],
)
def test_a_failed_import_leaves_what_was_there(theirs, tmp_path, capsys, there, damage, message):
    ours = tmp_path / "ours"
    if there:
        assert cli.main(["import", str(theirs), str(ours)]) == 0
    before = _files(ours)
    for name, content in damage.items():
        if name == "tensor":
            arrays = safetensors.numpy.load_file(theirs / files.SINGLE)
            arrays["shared.weight"] = arrays["shared.weight"].astype(np.float64)
            arrays["shared.weight"][2, 3] = content
            safetensors.numpy.save_file(arrays, theirs / files.SINGLE)
        elif name == "more ids":
            _add_pieces(theirs / "tokenizer.json", content)
        else:
            (theirs / name).write_text(content)
    assert cli.main(["import", str(theirs), str(ours), *["--overwrite"] * there]) == 2
    assert message in capsys.readouterr().err
    assert _files(ours) == before and ours.exists() == there


def test_an_import_without_the_vocabulary_takes_that_of_the_last_one_away(theirs, tmp_path):
    assert cli.main(["import", str(theirs), str(tmp_path / "ours")]) == 0
    assert cli.main(["import", str(theirs), str(tmp_path / "ours"), "--overwrite", "--without-vocabulary"]) == 0
    assert t2t.load(tmp_path / "ours").vocabulary is None


def test_a_number_that_a_type_lacks_is_refused_and_infinite_ones_are_not(theirs, tmp_path, capsys, caplog):
    arrays = safetensors.numpy.load_file(theirs / files.SINGLE)
    arrays["shared.weight"][2, 3] = 1e38
    arrays["decoder.final_layer_norm.weight"][0] = np.inf
    safetensors.numpy.save_file(arrays, theirs / files.SINGLE)
    command = ["import", str(theirs), str(tmp_path / "ours")]
    assert cli.main([*command, "--dtype", "float16"]) == 2
    assert "holds 1e+38, which float16 has no number for: take bfloat16 or float32" in capsys.readouterr().err
    assert cli.main(command) == 0
    assert "decoder/final_norm/scale holds values that are not finite" in caplog.text


def test_the_vocabulary_of_another_model_is_none(theirs, tmp_path, capsys, caplog):
    vocabularies.ByteVocabulary(sentinels=200).save(tmp_path / "other")
    assert cli.main(["import", str(theirs), str(tmp_path / "ours"), "--vocabulary", str(tmp_path / "other")]) == 2
    assert "it is the vocabulary of another model. Name files of the right one" in capsys.readouterr().err
    _add_pieces(theirs / "tokenizer.json", 1)
    assert t2t.load(theirs).vocabulary is None
    assert "has 385 ids, the model 384 rows" in caplog.text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--head", "masked"], "T5 has no head MaskedLM"),
        (["--head", "enhanced"], "T5 has no head EnhancedMaskedLM"),
        (["--vocabulary", "nowhere"], "vocabulary nowhere does not exist"),
        (["--vocabulary", "theirs/config.json"], "theirs/config.json cannot be read as a vocabulary"),
    ],
)
def test_what_cannot_be_asked_for_writes_nothing(theirs, tmp_path, monkeypatch, capsys, options, message):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["import", "theirs", "ours", *options]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "ours").exists()


def test_a_name_that_is_no_directory_is_looked_for_on_the_hub(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert cli.main(["import", "google-t5/t5-nowhere", str(tmp_path / "ours")]) == 1
    message = capsys.readouterr().err
    assert "no directory google-t5/t5-nowhere" in message and "cannot be reached" in message


@pytest.mark.hf
@pytest.mark.slow
def test_an_export_is_verified_by_transformers(theirs, tmp_path, capsys):
    assert cli.main(["export", str(theirs), str(tmp_path / "out"), "--verify"]) == 0
    out = capsys.readouterr().out
    for part in ("no key is missing", "are ours within", "gives the ids of the vocabulary"):
        assert part in out
    assert cli.main(["export", str(theirs), str(tmp_path / "half"), "--verify", "--dtype", "bfloat16"]) == 0


@pytest.mark.hf
@pytest.mark.slow
def test_a_verification_can_fail(theirs):
    from t2t.hf import verify

    other = jax.tree.map(lambda leaf: leaf * 1.01, tiny.params(MODEL))
    with pytest.raises(verify.VerificationError, match="computes other numbers"):
        list(verify.verify(theirs, config=MODEL, params=other, vocabulary=BYTES))
    (theirs / "tokenizer.json").write_text((theirs / "tokenizer.json").read_text().replace('"Ġ": 35', '"Ġ": 36'))
    with pytest.raises((verify.VerificationError, ValueError)):
        list(verify.verify(theirs, config=MODEL, params=tiny.params(MODEL), vocabulary=BYTES))


MEMORY = """
import sys, threading, time
from t2t import cli

def anonymous():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("RssAnon"))

peak, done = [0], threading.Event()

def watch():
    while not done.wait(0.01):
        peak[0] = max(peak[0], anonymous())

watcher = threading.Thread(target=watch)
watcher.start()
code = cli.main(sys.argv[1:])
done.set()
watcher.join()
print("PEAK", peak[0] * 1024)
sys.exit(code)
"""


def _largest_and_make(directory) -> tuple[int, int]:
    """A Hugging Face directory of a T5 with a billion parameters, and the bytes of its largest stacked leaf."""
    config = t5.t5(num_layers=24, d_model=1024, num_heads=16, head_dim=64, d_ff=7168, vocab_size=32128)
    from t2t import families

    bindings = families.bindings(families.expressing(config)[0], config)
    noise = np.random.default_rng(0).normal(size=2**20).astype(np.float32)
    tensors = [files.Tensor(b.key, b.shape, lambda b=b: np.resize(noise, b.shape)) for b in bindings]
    directory.mkdir()
    files.write(directory, tensors, dtype="float32", max_shard_bytes=10**9)
    attributes = families.expressing(config)[1]
    (directory / "config.json").write_text(json.dumps({"model_type": "t5", **attributes}))
    from t2t.models import base

    shapes = base.Network(config).shapes_by_path().values()
    return base.count_parameters(config), 4 * max(int(np.prod(shape)) for shape in shapes)


@pytest.mark.nightly
def test_a_billion_parameters_stream(tmp_path):
    count, largest = _largest_and_make(tmp_path / "theirs")
    assert count > 1e9
    for command in (["import", "theirs", "ours"], ["export", "ours", "again"]):
        done = subprocess.run(
            [sys.executable, "-c", MEMORY, *command], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        peak = int(done.stdout.rpartition("PEAK")[2])
        print(command[0], f"peak {peak / 1e9:.2f} GB, allowed {0.5 + 3 * largest / 1e9:.2f} GB")
        assert peak < 0.5e9 + 3 * largest


@pytest.mark.nightly
def test_a_bert_base_is_imported_within_ten_seconds(tmp_path):
    """On two cores, the time of starting Python and importing JAX included."""
    config = t2t.preset("bert-base-uncased", head=t2t.heads.PRETRAINING)
    export.export(tmp_path / "theirs", config=config, params=tiny.params(config))
    began = time.monotonic()
    subprocess.run([sys.executable, "-m", "t2t", "import", "theirs", "ours"], cwd=tmp_path, check=True)
    taken = time.monotonic() - began
    print(f"imported in {taken:.1f} s")
    assert taken < 10
