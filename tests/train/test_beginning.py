"""How a run begins: the vocabulary it takes, what its checkpoints hold, and the words for a run that cannot go on."""

import json

import pytest

from t2t.errors import UsageError
from t2t.train import beginning, build, checkpoint, run_directory, sources
from t2t.train.faults import NonFiniteError
from t2t.vocabulary import ByteVocabulary, Vocabulary
from tests.train import tiny_run


def test_a_run_keeps_its_vocabulary_else_takes_the_configs_else_bytes(tmp_path):
    for name, sentinels in (("kept", 10), ("configured", 20)):
        ByteVocabulary(sentinels=sentinels).save(tmp_path / name)
    configured = tiny_run.experiment(vocabulary=str(tmp_path / "configured"))
    assert beginning.choose_vocabulary(configured, None, kept=tmp_path / "kept") == Vocabulary.load(tmp_path / "kept")
    assert len(beginning.choose_vocabulary(configured, None, kept=None).sentinels) == 20
    assert beginning.choose_vocabulary(tiny_run.experiment(), None, kept=None) == ByteVocabulary()
    with pytest.raises(UsageError, match="vocabulary: "):
        beginning.choose_vocabulary(tiny_run.experiment(vocabulary=str(tmp_path / "nothing")), None, kept=None)


def test_parameters_without_a_vocabulary_need_one(tmp_path):
    source = sources.Source(
        path=tmp_path / "model", kind="model", config=None, vocabulary=None, shapes={}, leaves=lambda asked: iter(())
    )
    for size in (None, 100):
        with pytest.raises(UsageError, match=r"model holds no vocabulary.*--vocabulary"):
            beginning.choose_vocabulary(tiny_run.experiment(vocabulary_size=size), source, kept=None)
    ByteVocabulary().save(tmp_path / "bytes")
    given = tiny_run.experiment(vocabulary=str(tmp_path / "bytes"))
    assert beginning.choose_vocabulary(given, source, kept=None) == ByteVocabulary()


def test_decoders_start_as_those_of_the_parameters_did(tmp_path):
    ByteVocabulary().save(tmp_path / "bytes")
    source = sources.Source(
        path=tmp_path,
        kind="model",
        config=None,
        vocabulary=tmp_path / "bytes",
        start_id=1,
        shapes={},
        leaves=lambda asked: iter(()),
    )
    assert ByteVocabulary().start_id == 0
    for configured in (None, str(tmp_path / "bytes")):
        found = beginning.choose_vocabulary(tiny_run.experiment(vocabulary=configured), source, kept=None)
        assert found.start_id == 1
        found.save(tmp_path / "kept")
        assert beginning.choose_vocabulary(tiny_run.experiment(), None, kept=tmp_path / "kept").start_id == 1


def test_checkpoints_hold_all_but_frozen_parameters():
    pieces = build.build(tiny_run.experiment(), ByteVocabulary())
    assert set(beginning.to_save(pieces.state)) == {"step", "params", "opt_state", "carry", "guard"}


def test_what_the_loop_knows_goes_to_json_and_back():
    position = {"positions": [4, 9], "rows": 2}
    state = beginning.LoopState(position=position, interval={"steps": 1}, evaluated=6)
    assert beginning.LoopState(**state.to_json()) == state


def test_a_run_that_cannot_go_on_says_what_is_left(tmp_path):
    with checkpoint.CheckpointStore(tmp_path) as store:
        error = beginning.explain(NonFiniteError(7, ["loss"]), store)
        assert "not finite after step 7 (loss)" in str(error) and "No checkpoint is there yet" in str(error)
        assert isinstance(error, UsageError)  # exit code 2: a job controller must not try it again
        (tmp_path / "5").mkdir()
        error = beginning.explain(beginning.DataError("no batch: gone.txt"), store)
        assert str(error) == (
            f"no batch: gone.txt. The last good checkpoint is {tmp_path / '5'}. Put that right and run the same "
            "command to go on."
        )
        assert not isinstance(error, UsageError)
        with pytest.raises(beginning.DataError) as caught:
            raise beginning.DataError("no batch: too long") from ValueError("too long")
        error = beginning.explain(caught.value, store)
        assert isinstance(error, UsageError) and "would come to the same example" in str(error)


def test_a_cache_that_cannot_be_written_is_named_at_the_start(tmp_path, monkeypatch):
    monkeypatch.delenv(beginning.CACHE, raising=False)
    assert beginning.cache_directory() is None
    monkeypatch.setenv(beginning.CACHE, str(tmp_path / "new"))
    assert beginning.cache_directory() == tmp_path / "new"
    (tmp_path / "file").touch()
    monkeypatch.setenv(beginning.CACHE, str(tmp_path / "file" / "cache"))
    with pytest.raises(UsageError, match="cannot be kept in T2T_CACHE=.*file/cache: .*unset it"):
        beginning.cache_directory()


def test_the_store_keeps_what_the_config_says(tmp_path):
    experiment = tiny_run.experiment(checkpoint={"keep": 2, "best": "tiny_first/accuracy", "best_is": "highest"})
    store = beginning.open_store(run_directory.RunDirectory(tmp_path), experiment)
    assert (store.keep, store._best) == (2, checkpoint.Best(metric="tiny_first/accuracy", lower_is_better=False))


def test_attributes_of_the_published_files_stay_with_a_run(tmp_path):
    """Those of a head that it does not train, for its export; how to generate is its own."""
    kept = {"classifier_pooling": "mean"}
    source = sources.Source(
        path=tmp_path, kind="Hugging Face", config=None, vocabulary=None, shapes={}, leaves=lambda asked: iter(()),
        origin={"kept": kept, "generation": {"num_beams": 4}},
    )  # fmt: skip
    store = beginning.open_store(run_directory.RunDirectory(tmp_path / "run"), tiny_run.experiment())
    assert beginning.origin(source, store, None) == {"origin": {"kept": kept}}
    assert beginning.origin(None, store, None) == {}
    (tmp_path / "run" / "checkpoints" / "3").mkdir(parents=True)
    (tmp_path / "run" / "checkpoints" / "3" / "config.json").write_text(json.dumps({"origin": {"kept": kept}}))
    assert beginning.origin(None, store, 3) == {"origin": {"kept": kept}}
