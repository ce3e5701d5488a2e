import json

import pytest

from t2t.errors import UsageError
from t2t.train import submissions


def record(prediction, **numbers):
    return {"input": "", "prediction": prediction, "target": "<unk>", **numbers}


def lines(tmp_path, task, records):
    path, invalid = submissions.write(tmp_path / "made", task, records)
    return path.name, path.read_text(encoding="utf-8").splitlines(), invalid


def test_glue_takes_tables_of_ids_or_names(tmp_path):
    records = [record("acceptable", idx=1), record("unacceptable", idx=0), record("perhaps", idx=2)]
    assert lines(tmp_path, "glue_cola", records) == ("CoLA.tsv", ["index\tprediction", "0\t0", "1\t1", "2\t0"], 1)
    made = lines(tmp_path, "glue_mnli_mismatched", [record("neutral", idx=7)])
    assert made == ("MNLI-mm.tsv", ["index\tprediction", "7\tneutral"], 0)
    made = lines(tmp_path, "glue_stsb", [record("3.4", idx=0), record("9", idx=1), record("none", idx=2)])
    assert made == ("STS-B.tsv", ["index\tprediction", "0\t3.400", "1\t0.000", "2\t0.000"], 2)


def test_super_glue_takes_json_lines(tmp_path):
    name, made, _ = lines(tmp_path, "super_glue_boolq", [record("True", idx=1), record("False", idx=0)])
    assert (name, made) == ("BoolQ.jsonl", ['{"idx": 0, "label": "false"}', '{"idx": 1, "label": "true"}'])
    assert lines(tmp_path, "super_glue_copa", [record("choice2", idx=0)])[1] == ['{"idx": 0, "label": 1}']
    assert lines(tmp_path, "super_glue_cb", [record("neutral", idx=3)])[1] == ['{"idx": 3, "label": "neutral"}']


def test_wsc_compares_the_referent(tmp_path):
    records = [{**record("The stable", idx=0), "target": "stable"}, {**record("yard", idx=1), "target": "stable"}]
    assert lines(tmp_path, "super_glue_wsc", records) == (
        "WSC.jsonl", ['{"idx": 0, "label": "True"}', '{"idx": 1, "label": "False"}'], 0,
    )  # fmt: skip


def test_multirc_is_nested(tmp_path):
    places = ((4, 1, 0, "True"), (4, 1, 1, "False"), (4, 2, 2, "no"), (5, 3, 3, "True"))
    records = [
        record(text, **{"idx/paragraph": p, "idx/question": q, "idx/answer": a}) for p, q, a, text in reversed(places)
    ]
    name, made, invalid = lines(tmp_path, "super_glue_multirc", records)
    assert (name, invalid) == ("MultiRC.jsonl", 1)
    assert json.loads(made[0]) == {
        "idx": 4,
        "passage": {
            "questions": [
                {"idx": 1, "answers": [{"idx": 0, "label": 1}, {"idx": 1, "label": 0}]},
                {"idx": 2, "answers": [{"idx": 2, "label": 0}]},
            ]
        },
    }
    assert json.loads(made[1])["idx"] == 5


def test_record_and_squad_take_texts(tmp_path):
    _, made, _ = lines(tmp_path, "super_glue_record", [record(" Zürich ", **{"idx/passage": 0, "idx/query": 9})])
    assert made == ['{"idx": 9, "label": "Zürich"}']
    _, made, _ = lines(tmp_path, "squad_v2", [record("Rome", id="a"), record("unanswerable", id="b")])
    assert json.loads(made[0]) == {"a": "Rome", "b": ""}


def test_every_file_is_for_one_task():
    submissions.check(["glue_cola", "glue_rte", "super_glue_rte"])
    with pytest.raises(UsageError, match="glue_mnli and glue_mnli_matched are both MNLI-m.tsv"):
        submissions.check(["glue_mnli", "glue_mnli_matched"])
    with pytest.raises(UsageError, match="imdb has no format"):
        submissions.check(["imdb"])


def test_predictions_without_numbers_are_refused(tmp_path):
    with pytest.raises(UsageError, match="have no 'idx', which CoLA.tsv needs"):
        submissions.write(tmp_path, "glue_cola", [record("acceptable")])
