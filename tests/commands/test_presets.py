"""`t2t presets`: sizes and operations that can be worked out by hand, and what is said of one preset."""

import pytest

import t2t
from t2t import cli, families
from t2t.commands import presets

NAMES = ("bert-tiny", "electra-small-generator", "t5-small", "t5-v1_1-small", "albert-base-v2", "gpt2")


def columns(line: str) -> list[str]:
    return line.replace(" MiB", "_MiB").split()


@pytest.fixture
def listed(monkeypatch, capsys):
    """The rows of some presets, by name."""
    monkeypatch.setattr(t2t, "presets", lambda: NAMES)
    assert cli.main(["presets", "--length", "512"]) == 0
    head, *rows = map(columns, capsys.readouterr().out.splitlines())
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}


def test_the_columns(listed):
    assert list(listed) == list(NAMES)
    assert listed["t5-small"] == {
        "parameters": "60,506,624", "layers": "6+6", "width": "512",
        "float32_MiB": "230.8", "bfloat16_MiB": "115.4", "int8_MiB": "57.7",
        "FLOPs/token": listed["t5-small"]["FLOPs/token"],
    }  # fmt: skip
    assert (listed["bert-tiny"]["parameters"], listed["bert-tiny"]["width"]) == ("4,385,920", "128")
    assert (listed["albert-base-v2"]["layers"], listed["gpt2"]["layers"]) == ("12", "12")


def of_blocks(*, layers: int, width: int, ff: int, length: int, causal: bool = False) -> int:
    """Of one token of a row: six for each value of a kernel, and the scores and what they read."""
    kernels = 4 * width * width + 2 * width * ff
    return layers * (6 * kernels + (6 if causal else 12) * width * length)


def test_operations_by_hand(listed):
    """A bare encoder has no output; its pooler reads one token of a row. Layers that share parameters run all."""
    bert = of_blocks(layers=2, width=128, ff=512, length=512) + 6 * 128 * 128 / 512
    albert = of_blocks(layers=12, width=768, ff=3072, length=512) + 6 * 128 * 768 + 6 * 768 * 768 / 512
    gpt2 = of_blocks(layers=12, width=768, ff=3072, length=512, causal=True) + 6 * 50257 * 768
    for name, expected in {"bert-tiny": bert, "albert-base-v2": albert, "gpt2": gpt2}.items():
        assert listed[name]["FLOPs/token"] == f"{expected:.3g}", name
    # Of either side's tokens alike; the decoder has cross-attention besides, whose scores are not halved.
    encoder = of_blocks(layers=6, width=512, ff=2048, length=512)
    decoder = of_blocks(layers=6, width=512, ff=2048, length=512, causal=True)
    cross = 6 * (6 * 4 * 512 * 512 + 12 * 512 * 512)
    assert listed["t5-small"]["FLOPs/token"] == f"{(encoder + decoder + cross + 6 * 32128 * 512) / 2:.3g}"


def test_one_preset_with_its_paper_and_differences(capsys):
    assert cli.main(["presets", "t5-v1_1-small", "--length", "64"]) == 0
    out = capsys.readouterr().out
    assert families.docstring(families.by_model_type("t5")).splitlines()[0] in out
    for part in ("arXiv:1910.10683", "Differs: presets of 1.1 have dropout 0", "feed_forward.activation", "76,961,152",
                 "MiB in int8", "training FLOPs per token at length 64"):  # fmt: skip
        assert part in out


@pytest.mark.parametrize("family", families.all_families().values(), ids=lambda family: family.model_type)
def test_every_family_names_its_presets_and_its_paper(family):
    text = families.docstring(family)
    assert "\nReference: " in text
    assert any(name.split("-")[0] in text for name in family.presets)


def test_names_alone_are_all(capsys):
    assert cli.main(["presets", "--names"]) == 0
    assert capsys.readouterr().out.split() == list(t2t.presets())
    assert cli.main(["presets", "--length", "0"]) == 2
    assert "--length 0" in capsys.readouterr().err


@pytest.mark.nightly
def test_every_preset_has_a_row(capsys):
    assert cli.main(["presets"]) == 0
    head, *rows = map(columns, capsys.readouterr().out.splitlines())
    assert [row[0] for row in rows] == list(t2t.presets())
    assert {len(row) for row in rows} == {len(head)} == {5 + len(presets.WIDTHS)}
