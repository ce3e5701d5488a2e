"""Names of the Hub: the cache answers where nobody else does, and one message says so where it cannot."""

import importlib
import types

import huggingface_hub
import pytest
from huggingface_hub import constants, errors

from t2t.errors import UsageError
from t2t.hf import hub

HASH = 40 * "a"


def connection_error() -> Exception:
    """What the HTTP library of the installed huggingface-hub raises where there is no network."""
    library = importlib.import_module(errors.HTTPError.__module__.partition(".")[0])
    return (getattr(library, "ConnectError", None) or library.ConnectionError)("Name or service not known")


def not_found() -> Exception:
    response = types.SimpleNamespace(headers={}, request=None, status_code=404)
    return errors.RepositoryNotFoundError("404", response=response)


@pytest.fixture
def calls(tmp_path, monkeypatch):
    """What the Hub is asked for; its cache is in an empty folder."""
    asked = []
    real = huggingface_hub.snapshot_download

    def snapshot_download(name, **options):
        asked.append(options)
        return real(name, **options)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    return asked


def answer(monkeypatch, with_what):
    """The Hub lists these files, or the question ends with this error."""

    def model_info(name, timeout):
        if isinstance(with_what, Exception):
            raise with_what
        return types.SimpleNamespace(siblings=[types.SimpleNamespace(rfilename=file) for file in with_what])

    monkeypatch.setattr(huggingface_hub, "model_info", model_info)


def keep(directory, *files: str):
    """Files of the repository some/model in the cache, as huggingface-hub keeps them."""
    repository = directory / "cache" / "models--some--model"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(HASH)
    for file in files:
        (repository / "snapshots" / HASH / file).parent.mkdir(parents=True, exist_ok=True)
        (repository / "snapshots" / HASH / file).touch()
    return repository / "snapshots" / HASH


@pytest.mark.parametrize("name", ["nope", "some/model"])
@pytest.mark.parametrize(
    "error", [connection_error(), errors.OfflineModeIsEnabled("offline"), TimeoutError()], ids=repr
)
def test_where_nobody_answers_the_cache_is_asked_at_once(calls, monkeypatch, name, error):
    answer(monkeypatch, error)
    with pytest.raises(hub.HubError, match=f"no directory {name}, and the Hugging Face Hub cannot be reached .*nor is"):
        hub.find(name)
    assert {options["local_files_only"] for options in calls} == {True}


@pytest.mark.parametrize("weights", ["model.safetensors", "pytorch_model.bin", "flax_model-00001-of-00002.msgpack"])
def test_what_was_downloaded_is_found_without_a_network(calls, monkeypatch, tmp_path, weights):
    answer(monkeypatch, connection_error())
    kept = keep(tmp_path, "config.json", weights)
    assert hub.find("some/model") == kept
    assert hub.find("some/model", patterns=("*.json",)) == kept


def test_a_repository_without_weights_in_the_cache_is_not_all_there(calls, monkeypatch, tmp_path):
    answer(monkeypatch, connection_error())
    keep(tmp_path, "config.json")
    with pytest.raises(hub.HubError, match="nor is some/model in its cache"):
        hub.find("some/model")


def test_a_name_that_the_hub_does_not_know(calls, monkeypatch, tmp_path):
    answer(monkeypatch, not_found())
    with pytest.raises(UsageError, match="no directory some/model, and no repository of that name"):
        hub.find("some/model")
    kept = keep(tmp_path, "config.json", "model.safetensors")  # a private one, downloaded by somebody with a token
    assert hub.find("some/model") == kept


def test_the_first_format_of_weights_is_downloaded(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    answer(monkeypatch, ["config.json", "tf_model.h5", "flax_model.msgpack", "pytorch_model.bin"])
    asked = []
    monkeypatch.setattr(
        huggingface_hub, "snapshot_download", lambda name, allow_patterns: asked.append(allow_patterns) or "there"
    )
    assert str(hub.find("some/model")) == "there"
    assert asked == [["*.json", "*.txt", "*.model", "pytorch_model*.bin"]]


def test_a_download_that_breaks_off(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    answer(monkeypatch, ["config.json", "model.safetensors"])

    def fail(error):
        def snapshot_download(name, allow_patterns):
            raise error

        monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)

    fail(connection_error())
    with pytest.raises(hub.HubError, match="some/model could not be downloaded from the Hugging Face Hub: Name or"):
        hub.find("some/model")
    fail(OSError(28, "No space left on device"))
    with pytest.raises(OSError, match="No space left"):
        hub.find("some/model")


def test_a_directory_is_never_looked_for(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    answer(monkeypatch, AssertionError("the Hub was asked"))
    (tmp_path / "mine").mkdir()
    for path in ("mine", "runs/missing", "./missing", "a/b/c"):
        assert str(hub.find(path)) == str(tmp_path.__class__(path))


def test_a_name_that_no_directory_has_is_looked_for_nowhere(calls):
    with pytest.raises(UsageError, match="there is no directory n{100}: File name too long"):
        hub.find("n" * 300)
    assert not calls
