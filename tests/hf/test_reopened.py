"""Both versions of transformers open exports and save them again, in the type and with the settings they were given.

transformers refuses to save settings that contradict each other (huggingface/transformers#28793). One process of the
old version opens all directories, since importing it takes longer than everything else.
"""

import json

import pytest

from t2t import families, heads
from t2t.hf import export, generation_settings
from tests.families.test_families import shrink
from tests.hf import tiny, version4

pytestmark = [pytest.mark.hf, pytest.mark.slow]

SETTINGS = {
    "beams": {"num_beams": 4, "early_stopping": True, "length_penalty": 2.0, "max_new_tokens": 9},
    "never": {"num_beams": 2, "early_stopping": "never", "num_return_sequences": 2, "no_repeat_ngram_size": 3},
    "drawn": {"do_sample": True, "top_k": 5, "temperature": 0.5, "num_return_sequences": 3, "max_length": 12},
    "none": {},
}
TYPES = ("float32", "bfloat16", "float16")


def _generating():
    """The first size of every family that generates, but for the one that transformers 5 has no class of."""
    for family in families.all_families().values():
        config = family.with_head(shrink(next(iter(family.presets.values()))()), heads.PRETRAINING)
        architecture = family.architecture(config)
        if family.model_type != "transfo-xl" and generation_settings.generates(architecture):
            yield family.model_type, architecture, config


MODELS = {name: (architecture, config) for name, architecture, config in _generating()}


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Every model with settings of one kind after the other, and one in every type: name -> class, directory."""
    root, found = tmp_path_factory.mktemp("exported"), {}
    for place, (name, (architecture, config)) in enumerate(MODELS.items()):
        kind = list(SETTINGS)[place % len(SETTINGS)]
        export.export(root / name, config=config, params=tiny.params(config), generation=SETTINGS[kind])
        found[name] = (architecture, str(root / name), kind)
    for dtype in TYPES:
        export.export(root / dtype, config=tiny.T5, params=tiny.params(tiny.T5), dtype=dtype)
        found[dtype] = ("T5ForConditionalGeneration", str(root / dtype), "none")
    return found


def said(directory: str) -> dict:
    """What generation_config.json says, but for the version."""
    with open(f"{directory}/{generation_settings.FILE}", encoding="utf-8") as file:
        return {name: value for name, value in json.load(file).items() if not name.endswith(("_version", "_config"))}


def assert_kept(kind: str, directory: str, again: str) -> None:
    """What was asked for stands in both directories."""
    for place in (directory, again):
        assert said(place).items() >= SETTINGS[kind].items()


@pytest.mark.parametrize("name", MODELS)
def test_transformers_5_saves_it_again(exported, name, tmp_path):
    import transformers

    architecture, directory, kind = exported[name]
    getattr(transformers, architecture).from_pretrained(directory).save_pretrained(tmp_path)
    assert_kept(kind, directory, str(tmp_path))


@pytest.mark.parametrize("dtype", TYPES)
def test_transformers_5_opens_what_is_stored(exported, dtype):
    import transformers

    model = transformers.T5ForConditionalGeneration.from_pretrained(exported[dtype][1])
    assert str(model.dtype) == f"torch.{dtype}"


REOPEN = """
answer = {}
for name, (architecture, directory, kind) in given["exported"].items():
    cls = getattr(transformers, architecture)
    model = cls.from_pretrained(directory)
    stored = cls.from_pretrained(directory, torch_dtype="auto").dtype
    answer[name] = {"dtype": str(model.dtype), "stored": str(stored), "error": ""}
    try:
        model.save_pretrained(given["again"] + "/" + name)
    except ValueError as error:
        answer[name]["error"] = str(error)
"""


@pytest.mark.hf4
def test_transformers_4_saves_it_again_and_opens_everything_in_float32(exported, tmp_path):
    found = version4.run(REOPEN, exported=exported, again=str(tmp_path))
    assert {name: made["error"] for name, made in found.items() if made["error"]} == {}
    for name, (_, directory, kind) in exported.items():
        assert_kept(kind, directory, str(tmp_path / name))
    for dtype in TYPES:
        assert (found[dtype]["dtype"], found[dtype]["stored"]) == ("torch.float32", f"torch.{dtype}")
