"""Small files in the official formats, and the real ones of the shared data."""

import functools
import gzip
import json

import pytest

from t2t.data import official_files
from t2t.data.text_files import CorpusError, MissingFileError
from tests.shared_data import shared_data


def write(path, *lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_tables_keep_quotes_and_have_other_names(tmp_path):
    path = write(
        tmp_path / "train.tsv",
        "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String",
        '1\t702876\t702977\tHe said , " no .\tHe said " no " .',
    )
    columns = {"sentence1": ("text_a", "#1 String"), "sentence2": ("#2 String",), "label": ("Quality",)}
    (row,) = official_files.records(path, columns=columns)
    assert (row["sentence1"], row["label"], row["idx"]) == ('He said , " no .', "1", 0)
    assert row["sentence2"] == 'He said " no " .'


def test_own_names_go_first_and_index_is_the_number(tmp_path):
    path = write(tmp_path / "dev.tsv", "index\tsentence\ttext", "17\ta\tb")
    (row,) = official_files.records(path, columns={"sentence": ("text",)})
    assert (row["sentence"], row["idx"]) == ("a", "17")
    own = write(tmp_path / "own.jsonl", '{"id": "x7", "text": "a"}')
    assert [row["idx"] for row in official_files.records(own)] == [0]


def test_a_row_that_is_too_short_lacks_fields(tmp_path):
    path = write(tmp_path / "dev.tsv", "sentence1\tsentence2\tlabel", "a\tb")
    (row,) = official_files.records(path)
    assert "label" not in row
    assert list(official_files.records(path, may_be_short=True)) == []  # as TFDS leaves out damaged rows of QQP


def test_what_is_no_text_is_left_out_if_asked(tmp_path):
    path = tmp_path / "dev.tsv"
    path.write_bytes(b"sentence\tlabel\ngood\t1\nb\xe4d\t0\n")
    with pytest.raises(CorpusError, match="is not UTF-8"):
        list(official_files.records(path))
    assert [row["sentence"] for row in official_files.records(path, "skip")] == ["good"]


def test_json_lines_keep_their_kinds_and_errors_are_named(tmp_path):
    path = write(tmp_path / "dev.jsonl", json.dumps({"label": True, "n": [1]}), "no json", json.dumps({"label": False}))
    with pytest.raises(CorpusError, match="line 2: not JSON"):
        list(official_files.records(path))
    rows = list(official_files.records(path, "skip"))
    assert [row["label"] for row in rows] == [True, False]


def test_packed_and_parquet(tmp_path):
    with gzip.open(tmp_path / "dev.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write('{"a": 1}\n')
    assert list(official_files.records(tmp_path / "dev.jsonl.gz")) == [{"a": 1, "idx": 0}]
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"text": ["x"], "label": [1], "idx": [5]}), tmp_path / "dev.parquet")
    assert list(official_files.records(tmp_path / "dev.parquet")) == [{"text": "x", "label": 1, "idx": 5}]
    with pytest.raises(CorpusError, match="cannot tell the format from the name"):
        list(official_files.records(write(tmp_path / "dev.what", "x")))


def test_cola_has_no_header_but_its_test_set(tmp_path):
    train = write(tmp_path / "train.tsv", "gj04\t1\t\tOur friends won't buy this.", "bc01\t0\t*\tThey drank the pub.")
    assert list(official_files.cola(train)) == [
        {"sentence": "Our friends won't buy this.", "label": "1", "idx": 0},
        {"sentence": "They drank the pub.", "label": "0", "idx": 1},
    ]
    test = write(tmp_path / "test.tsv", "index\tsentence", "0\tBill whistled.")
    assert [row["sentence"] for row in official_files.cola(test)] == ["Bill whistled."]
    wrong = write(tmp_path / "wrong.tsv", "gj04\t1\t\tGood.", "gj04\tgood")
    with pytest.raises(CorpusError, match=r"wrong.tsv, line 2: not source, label 0 or 1"):
        list(official_files.cola(wrong))
    assert len(list(official_files.cola(wrong, "skip"))) == 1


def test_folders_are_labels(tmp_path):
    write(tmp_path / "train" / "pos" / "0_9.txt", "Bromwell High.", "Second line.")
    write(tmp_path / "train" / "neg" / "1_2.txt", "Story of a man.")
    write(tmp_path / "train" / "unsup" / "2_0.txt", "Unlabelled.")
    read = functools.partial(official_files.folders, labels={"pos": "positive", "neg": "negative"})
    rows = [row for path in official_files.find([str(tmp_path / "train")]) for row in read(path)]
    assert [(row["text"], row["label"]) for row in rows] == [
        ("Story of a man.", "negative"),
        ("Bromwell High.\nSecond line.", "positive"),
    ]


def test_squad_with_and_without_answers(tmp_path):
    content = {
        "version": "v2.0",
        "data": [
            {
                "title": "T",
                "paragraphs": [
                    {
                        "context": "C.",
                        "qas": [
                            {"id": "a", "question": "Q?", "answers": [{"text": "C", "answer_start": 0}] * 2},
                            {"id": "b", "question": "R?", "answers": [], "is_impossible": True},
                        ],
                    }
                ],
            }
        ],
    }
    rows = list(official_files.squad(write(tmp_path / "dev.json", json.dumps(content, indent=2))))
    assert rows[0] == {"id": "a", "title": "T", "question": "Q?", "context": "C.", "answers": {"text": ["C", "C"]}}
    assert rows[1]["answers"] == {"text": []}
    with pytest.raises(CorpusError, match="not the JSON of SQuAD"):
        list(official_files.squad(write(tmp_path / "other.json", '{"rows": []}')))


def test_trivia_qa(tmp_path):
    content = {
        "Data": [
            {"Question": "Who?", "QuestionId": "tc_3", "Answer": {"Value": "Bob", "Aliases": ["Bob", "Bobby"]}},
            {"Question": "When?", "QuestionId": "tc_4"},
        ]
    }
    rows = list(official_files.trivia_qa(write(tmp_path / "dev.json", json.dumps(content))))
    assert rows[0]["answer"] == {"value": "Bob", "aliases": ["Bob", "Bobby"]}
    assert rows[1]["answer"] == {"value": "<unk>", "aliases": []}


def test_super_glue_is_flattened_as_tfds_does(tmp_path):
    multirc = {
        "idx": 4,
        "passage": {
            "text": "P.",
            "questions": [
                {"question": "Q?", "idx": 1, "answers": [{"text": "A", "idx": 7, "label": 1}, {"text": "B", "idx": 8}]}
            ],
        },
    }
    place = {"paragraph": 4, "question": 1}
    rows = list(official_files.super_glue(write(tmp_path / "multirc.jsonl", json.dumps(multirc))))
    assert rows == [
        {"paragraph": "P.", "question": "Q?", "answer": text, "label": label, "idx": {**place, "answer": number}}
        for text, label, number in (("A", 1, 7), ("B", None, 8))
    ]
    record = {
        "source": "CNN",
        "idx": 0,
        "passage": {"text": "Al saw Bo.", "entities": [{"start": 7, "end": 8}, {"start": 0, "end": 1}]},
        "qas": [{"idx": 3, "query": "@placeholder saw", "answers": [{"start": 0, "end": 1, "text": "Al"}]}],
    }
    rows = list(official_files.super_glue(write(tmp_path / "record.jsonl", json.dumps(record))))
    assert rows == [
        {
            "passage": "Al saw Bo.",
            "query": "@placeholder saw",
            "entities": ["Al", "Bo"],
            "answers": ["Al"],
            "idx": {"passage": 0, "query": 3},
        }
    ]
    wsc = {"text": "A b.", "target": {"span1_text": "A", "span1_index": 0}, "idx": 2, "label": False}
    (row,) = official_files.super_glue(write(tmp_path / "wsc.jsonl", json.dumps(wsc)))
    assert (row["span1_text"], row["label"], row["idx"]) == ("A", False, 2)


def test_conll_in_both_forms(tmp_path):
    lines = ("-DOCSTART- -X- -X- O", "", "EU NNP B-NP B-ORG", "rejects VBZ B-VP O", "", "", "Peter NNP B-NP B-PER")
    old = write(tmp_path / "eng.train", *lines)
    assert list(official_files.conll(old, columns={"tokens": 0, "ner": -1})) == [
        {"tokens": ["EU", "rejects"], "ner": ["B-ORG", "O"], "idx": 0},
        {"tokens": ["Peter"], "ner": ["B-PER"], "idx": 1},
    ]
    lines = ("# text = don't", "1-2\tdon't\t_\t_", "1\tdo\tdo\tAUX", "2\tn't\tnot\tPART", "2.1\tgo\tgo\tVERB", "")
    new = write(tmp_path / "dev.conllu", *lines)
    read = functools.partial(official_files.conll, columns={"tokens": 1, "upos": 3}, universal=True)
    assert list(read(new)) == [{"tokens": ["do", "n't"], "upos": ["AUX", "PART"], "idx": 0}]
    short = write(tmp_path / "short.conllu", "1\tdo")
    with pytest.raises(CorpusError, match="line 1: 2 columns; column 4 is needed"):
        list(read(short))


def test_files_are_found_once(tmp_path):
    first, second = write(tmp_path / "b.tsv", "x"), write(tmp_path / "a.tsv", "x")
    assert official_files.find([str(first), str(tmp_path / "*.tsv")]) == [first, second]
    with pytest.raises(MissingFileError, match="No file matches"):
        official_files.find([str(tmp_path / "*.json")])


def test_real_files():
    """Numbers of rows as their sources state them."""
    (first, *others) = official_files.squad(shared_data("xquad", "xquad.de.json"))
    assert 1 + len(others) == 1190
    assert first["answers"]["text"] == ["308"]
    read = functools.partial(official_files.conll, columns={"tokens": 1, "upos": 3}, universal=True)
    rows = list(read(shared_data("ud_ewt", "en_ewt-ud-dev.conllu")))
    assert len(rows) == 2001
    assert rows[0]["upos"][:3] == ["ADP", "DET", "PROPN"]
    names = list(official_files.conll(shared_data("wnut17", "emerging.dev.conll"), columns={"tokens": 0, "ner": -1}))
    assert len(names) == 1009
    assert sum(tag.startswith("B-") for row in names for tag in row["ner"]) == 836
