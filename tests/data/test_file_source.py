import json

import pytest
import seqio

from t2t.data import cache, examples, file_source, pair_objectives, registry, templates, vocabularies
from t2t.data.corpora import CorpusError
from t2t.data.file_source import FileSource, with_files
from t2t.data.texts import raw_texts
from t2t.vocabulary import ByteVocabulary

BYTES = ByteVocabulary()


@pytest.fixture
def books(tmp_path):
    (tmp_path / "a.txt").write_text("First paragraph.\n\nSecond, which is longer.\n")
    (tmp_path / "b.txt").write_text("Third.\n")
    (tmp_path / "held_out.jsonl").write_text('{"body": "Held out."}\n')
    return tmp_path


def texts(source, split):
    return [x["text"].decode() for x in source.get_dataset(split, shuffle=False).as_numpy_iterator()]


def test_reads_documents_of_each_split(books):
    source = FileSource({"train": [f"{books}/*.txt"], "validation": [f"{books}/held_out.jsonl"]}, field="body")
    assert source.splits == ("train", "validation")
    assert texts(source, "train") == ["First paragraph.", "Second, which is longer.", "Third."]
    assert texts(source, "validation") == ["Held out."]
    with pytest.raises(ValueError, match="split='test'"):
        source.get_dataset("test")


def test_fingerprint_changes_with_the_files_and_how_they_are_read(books):
    first = FileSource({"train": [f"{books}/a.txt"]})
    assert first.fingerprint("train") == FileSource({"train": [f"{books}/a.txt"]}).fingerprint("train")
    assert first.fingerprint("train") != FileSource({"train": [f"{books}/a.txt"]}, unit="line").fingerprint("train")
    before = first.fingerprint("train")
    (books / "a.txt").write_text("Another text.\n")
    assert first.fingerprint("train") != before


def test_registered_objectives_read_the_files(books):
    names = registry.add_objectives("test_books", FileSource({"train": [f"{books}/*.txt"]}))
    try:
        loaded = examples.load_examples(
            "test_books_causal_lm", "train", vocabulary=BYTES, lengths={"targets": 16}, seed=0
        )
        ids = [token for i in range(len(loaded)) for token in loaded.store[i]["targets"].tolist()]
        assert BYTES.decode([i for i in ids if i != BYTES.eos_id]) == "First paragraph.Second, which is longer.Third."
    finally:
        for name in names:
            seqio.TaskRegistry.remove(name)


@pytest.fixture
def tasks(books):
    names = registry.add_objectives("test_other", FileSource({"train": [f"{books}/b.txt"]}))
    registry.add_text_to_text("test_qa", FileSource({"train": [f"{books}/b.txt"]}), metric_fns=[])
    yield
    for name in (*names, "test_qa"):
        seqio.TaskRegistry.remove(name)


def test_with_files_keeps_the_objective(books, tasks):
    task = with_files(
        "test_other_mlm", files=[f"{books}/a.txt"], eval_files=[f"{books}/held_out.jsonl"], field="body", unit="line"
    )
    assert task.name == "test_other_mlm"
    assert task.splits == ("train", "validation")
    loaded = examples.load_examples(task, "train", vocabulary=BYTES, lengths={"inputs": 64, "targets": 64}, seed=0)
    assert loaded.corruption is not None
    assert sorted(loaded.example(0, epoch=0)) == ["inputs", "targets", "weights"]
    assert seqio.TaskRegistry.get("test_other_mlm").source is not task.source


def test_files_stand_in_for_a_source_whose_text_has_another_name(books):
    source = registry.TextSource(lambda split: [{"title": "No.", "body": "Own."}], splits=("train",))
    for name in registry.add_objectives("test_renamed", source, field="body"):
        task = with_files(name, files=[f"{books}/b.txt"])
        seqio.TaskRegistry.remove(name)
        loaded = examples.load_examples(
            task, "train", vocabulary=BYTES, lengths=dict.fromkeys(task.output_features, 64), seed=0
        )
        assert len(loaded) == 1
        assert list(raw_texts(task)) == ["Third."]


def test_supervised_tasks_take_records(books, tasks):
    (books / "qa.tsv").write_text("inputs\ttargets\nhow\tso\n")
    task = with_files("test_qa", files=[f"{books}/qa.tsv"])
    loaded = examples.load_examples(
        task, "train", vocabulary=BYTES, lengths={"inputs": 9, "targets": 9}, seed=0, texts=True
    )
    assert [BYTES.decode(loaded.store[0][name].tolist()) for name in ("inputs", "targets")] == ["how", "so"]
    assert loaded.store.texts["inputs_pretokenized"] == ["how"]


def test_what_is_wrong_with_a_file_is_said_in_our_words(books, tasks):
    (books / "bad.txt").write_bytes(b"fine\n\nnot \xff fine\n")
    task = with_files("test_other_causal_lm", files=[f"{books}/bad.txt"])
    with pytest.raises(CorpusError, match="bad.txt is not UTF-8: byte 10 is 0xff"):
        examples.load_examples(task, "train", vocabulary=BYTES, lengths={"targets": 16}, seed=0)


def test_a_file_that_vanished_is_named(books, tasks):
    task = with_files("test_other_causal_lm", files=[f"{books}/a.txt"])
    (books / "a.txt").unlink()
    with pytest.raises(CorpusError, match="No file matches '.*a.txt'"):
        examples.load_examples(task, "train", vocabulary=BYTES, lengths={"targets": 16}, seed=0)


def test_files_are_needed(tasks):
    with pytest.raises(ValueError, match="needs files or eval_files"):
        with_files("test_other_mlm")
    with pytest.raises(CorpusError, match="No file matches"):
        with_files("test_other_mlm", files=["nothing.txt"])
    with pytest.raises(ValueError, match="one shard"):
        source = seqio.TaskRegistry.get("test_other_mlm").source
        source.get_dataset("train", shard_info=seqio.ShardInfo(0, 2))
    assert file_source.FileSource.num_input_examples(source, "train") is None


# Instructions: the rows of a file, and solved examples of the training file.

SEEN = [{"text": f"seen {i}", "mood": mood} for i, mood in enumerate(("sad", "glad", "calm"))]
HELD_OUT = {"text": "held out", "mood": "glad"}


@pytest.fixture
def moods(tmp_path):
    """Names of tasks on rows of their own, a file of three rows and one of a single row."""
    for name, rows in (("seen", SEEN), ("held_out", [HELD_OUT])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    own = registry.TextSource(lambda split: [{"text": f"own {i}", "mood": "old"} for i in range(4)], splits=("train",))
    template = templates.Template(inputs="{text}:", targets="{mood}", between=" ", separator="\n")
    names = templates.add_templates("test_moods", own, templates=(template,), shots=2)
    yield {name.removeprefix("test_moods_"): name for name in names}, tmp_path
    for name in names:
        seqio.TaskRegistry.remove(name)


def prompts(task, split):
    lengths = {"inputs": 90, "targets": 9}
    return examples.load_examples(task, split, vocabulary=BYTES, lengths=lengths, seed=0, texts=True).store.texts


def test_instructions_read_the_fields_of_their_templates_from_files(moods):
    names, folder = moods
    task = with_files(names["zero_shot"], files=[f"{folder}/seen.jsonl"])
    made = prompts(task, "train")
    assert made["inputs_pretokenized"] == ["seen 0:", "seen 1:", "seen 2:"]
    assert made["targets_pretokenized"] == ["sad", "glad", "calm"]
    assert list(raw_texts(task)) == ["sad", "seen 0", "glad", "seen 1", "calm", "seen 2"]


def test_solved_examples_are_of_the_training_file(moods):
    names, folder = moods
    files = {"files": [f"{folder}/seen.jsonl"], "eval_files": [f"{folder}/held_out.jsonl"]}
    task = with_files(names["few_shot"], **files)
    for split, questions in (("train", SEEN), ("validation", [HELD_OUT])):
        for prompt, row in zip(prompts(task, split)["inputs_pretokenized"], questions, strict=True):
            *solved, question = prompt.split("\n")
            assert question == f"{row['text']}:"
            others = {f"{other['text']}: {other['mood']}" for other in SEEN if other != row}
            assert len(set(solved)) == 2
            assert set(solved) <= others
    without = with_files(names["few_shot"], eval_files=files["eval_files"])
    (prompt,) = prompts(without, "validation")["inputs_pretokenized"]
    assert prompt.count("own ") == 2  # no other training rows are known
    assert prompt.endswith("held out:")


def test_cached_prompts_are_left_behind_when_their_solved_examples_change(moods):
    names, folder = moods

    def cached(suffix):
        task = with_files(names[suffix], files=[f"{folder}/seen.jsonl"], eval_files=[f"{folder}/held_out.jsonl"])
        return cache.cache_name(vocabularies.bind_vocabulary(task, BYTES), "validation", {"inputs": 90})

    before = {suffix: cached(suffix) for suffix in names}
    assert before == {suffix: cached(suffix) for suffix in names}
    with (folder / "seen.jsonl").open("a") as file:
        file.write(json.dumps(SEEN[0]) + "\n")
    after = {suffix: cached(suffix) for suffix in names}
    assert after["zero_shot"] == before["zero_shot"]
    assert after["few_shot"] != before["few_shot"]


def test_translations_are_read_from_records(tmp_path):
    (tmp_path / "pairs.tsv").write_text("source\ttarget\nthe cat\tle chat\n")
    source = registry.TextSource(lambda split: [{"source": "a", "target": "b"}], splits=("train",))
    name = pair_objectives.add_translations("test_pairs", source, pair=(0, 1))
    task = with_files(name, files=[f"{tmp_path}/pairs.tsv"])
    seqio.TaskRegistry.remove(name)
    vocabulary = ByteVocabulary(mask=True)
    lengths = {"inputs": 40, "targets": 40}
    loaded = examples.load_examples(task, "train", vocabulary=vocabulary, lengths=lengths, seed=0)
    ids = loaded.example(0, epoch=0)["targets"].tolist()
    assert vocabulary.decode([token for token in ids if token != vocabulary.eos_id]) == "the catle chat"
    assert list(raw_texts(task)) == ["the cat", "le chat"]
