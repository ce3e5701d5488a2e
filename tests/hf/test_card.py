"""Model cards: what the Hub reads, what people read, and the code shown to them."""

import json

import pytest

from t2t.hf import card, export
from tests.hf import tiny


def test_card(tmp_path):
    about = card.Card(
        name="tiny",
        license="apache-2.0",
        languages=["en"],
        base_model="google-t5/t5-small",
        recipe="A recipe.",
        data="Some *data*.",
        datasets=["allenai/c4"],
        metrics={"pydocs_topic/accuracy": 0.291},
        provenance={"step": 1500, "config sha256": "ab12"},
    )
    export.export(tmp_path, config=tiny.T5, params=tiny.params(tiny.T5), card=about)
    text = (tmp_path / "README.md").read_text()
    header, body = text.removeprefix("---\n").split("\n---\n", 1)
    fields = {name: json.loads(value) for name, value in (line.split(": ", 1) for line in header.splitlines())}
    assert fields["license"] == "apache-2.0" and fields["library_name"] == "transformers"
    assert fields["pipeline_tag"] == "text2text-generation" and fields["base_model"] == "google-t5/t5-small"
    result = fields["model-index"][0]["results"][0]
    assert result["metrics"] == [{"type": "accuracy", "value": 0.291, "name": "pydocs_topic/accuracy"}]
    for part in (
        "# tiny",
        "A recipe.",
        "Some *data*.",
        "0.291",
        "step: 1500",
        "config sha256: ab12",
        "AutoModelForSeq2SeqLM",
    ):
        assert part in body
    assert "pipeline(" not in body


def test_a_mask_token_is_shown_to_models_that_fill_masks():
    code = card.snippet(card.Card(name="x"), "BertForMaskedLM", has_tokenizer=True, mask_token="<mask>")
    assert "This is <mask>." in code


@pytest.mark.parametrize(
    ("architecture", "auto"),
    [
        ("T5ForConditionalGeneration", "AutoModelForSeq2SeqLM"),
        ("GPT2LMHeadModel", "AutoModelForCausalLM"),
        ("BertForMaskedLM", "AutoModelForMaskedLM"),
        ("BertForPreTraining", "AutoModelForPreTraining"),
        ("BertModel", "AutoModel"),
    ],
)
def test_code_without_a_tokenizer_only_opens_the_model(architecture, auto):
    code = card.snippet(card.Card(name="x"), architecture, has_tokenizer=False)
    assert card.auto_class(architecture) == auto
    assert f"{auto}.from_pretrained(path)" in code and "Tokenizer" not in code
    compile(code, "card", "exec")


def test_a_card_without_metrics_has_no_empty_table():
    text = card.render(
        card.Card(name="x"), architecture="BertModel", parameters=12, dtype="float32", has_tokenizer=False
    )
    assert "Results" not in text and "model-index" not in text and "license" not in text
