"""From text to text: an encoder-decoder of ours reads and writes what transformers does with tokenizer and model."""

import json
import shutil

import numpy as np
import pytest

import t2t
from t2t import families
from t2t.errors import UsageError
from t2t.families import bart, t5
from t2t.hf import export, frames
from t2t.train import build
from t2t.vocabulary import ByteVocabulary, Vocabulary
from tests.hf import tiny
from tests.shared_data import shared_data
from tests.train import tiny_run

SIDE = bart.Side(num_layers=2, num_heads=2, d_ff=7)
TEXTS = ["This is a test.", "I was born", "a"]


def small(words: Vocabulary, **form) -> t2t.Model:
    config = bart.bart(encoder=SIDE, decoder=SIDE, d_model=12, vocab_size=words.size, max_positions=40, **form)
    params = tiny.params(config)
    return t2t.Model(config=config, params=params, vocabulary=words, start_id=None)


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """Vocabularies as repositories of BART and mBART hold them."""
    bart_folder, mbart_folder = tmp_path_factory.mktemp("bart"), tmp_path_factory.mktemp("mbart")
    for name in ("vocab.json", "merges.txt"):
        shutil.copyfile(shared_data("tokenizers", "roberta", name), bart_folder / name)
    model = shared_data("tokenizers", "small_test_spm", "hf_test_sentencepiece.model")
    shutil.copyfile(model, mbart_folder / "sentencepiece.bpe.model")
    (mbart_folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "MBartTokenizer"}))
    return {"bart": Vocabulary.load(bart_folder), "mbart": Vocabulary.load(mbart_folder)}


def test_frames_of_the_families(words):
    of_bart = frames.of(small(words["bart"]).config, words["bart"])
    assert (of_bart.bos_id, of_bart.eos_id, of_bart.language_ids) == (0, 2, frozenset())
    of_mbart = frames.of(small(words["mbart"], is_pre_norm=True, scale=12**0.5).config, words["mbart"])
    assert of_mbart.bos_id is None and len(of_mbart.language_ids) == 25
    assert words["mbart"].languages["en_XX"] in of_mbart.language_ids
    assert not frames.of(t5.PRESETS["t5-small"](), ByteVocabulary())
    assert not frames.of(families.preset("bart-base"), None)
    assert not frames.of(families.preset("gpt2"), words["bart"])


def test_training_reads_what_the_exported_tokenizer_writes(words, tmp_path):
    """Else a model trained here would be given other texts there."""
    tokenizers = pytest.importorskip("tokenizers")
    for name, form in (("bart", {}), ("mbart", {"is_pre_norm": True, "scale": 12**0.5})):
        model, folder = small(words[name], **form), tmp_path / name
        export.export(folder, config=model.config, params=model.params, vocabulary=model.vocabulary)
        experiment = tiny_run.experiment(model=model.config, data={"lengths": {"inputs": 32, "targets": 32}})
        converter = build.make_converter(experiment, model.vocabulary)
        task = np.array([*words[name].encode(TEXTS[0] + (" en_XX" if name == "mbart" else "")), 2], np.int32)
        read = converter.trim({"inputs": task, "targets": task})[0]
        written = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json")).encode(TEXTS[0])
        assert read["inputs"].tolist() == read["targets"].tolist() == written.ids


def test_codes_of_languages_stand_at_the_end_of_texts(words):
    code = words["mbart"].languages["ro_RO"]
    assert words["mbart"].encode("I was ro_RO") == [*words["mbart"].encode("I was"), code]
    assert words["mbart"].encode_batch(["ro_RO", "", "I ro_RO "])[::2] == [[code], [*words["mbart"].encode("I"), code]]
    assert code not in words["mbart"].encode("I was ro_RO born") + words["mbart"].encode("I wasro_RO")
    assert words["mbart"].split_language("I was ro_RO") == ("I was", code)
    assert words["mbart"].decode([*words["mbart"].encode("I was"), 2, code]) == "I was"
    assert words["bart"].languages == {}


def test_without_a_language_the_decoder_of_mbart_does_not_start(words):
    model = small(words["mbart"], is_pre_norm=True, scale=12**0.5)
    with pytest.raises(UsageError, match='give start="ro_RO"'):
        model.generate(["I en_XX"])
    with pytest.raises(UsageError, match="start='ro' is no special token.*<mask>, <pad>.*, ar_AR"):
        model.generate(["I en_XX"], start="ro")
    with pytest.raises(ValueError, match="text 2 has a target that does not end with the code"):
        model.score([("I en_XX", "I ro_RO"), ("I en_XX", "I")])
    assert np.isfinite(model.score([("I en_XX", "I ro_RO"), ("I en_XX", "I was de_DE")])).all()


@pytest.mark.hf
@pytest.mark.slow
@pytest.mark.parametrize(("name", "start"), [("bart", "</s>"), ("mbart", "ro_RO")])
def test_texts_are_answered_as_in_transformers(words, tmp_path, name, start):
    import torch
    import transformers

    form = {"is_pre_norm": True, "scale": 12**0.5} if name == "mbart" else {}
    model = small(words[name], **form)
    first = {"bart": 2, "mbart": words["mbart"].languages.get("ro_RO")}[name]
    export.export(tmp_path, config=model.config, params=model.params, vocabulary=words[name], start_id=first)
    ours = t2t.load(tmp_path)
    suffix = " en_XX" if name == "mbart" else ""
    texts = [text + suffix for text in TEXTS]
    tokens = transformers.AutoTokenizer.from_pretrained(tmp_path)
    theirs = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path).eval()
    expected, scores = [], []
    for text in TEXTS:
        inputs = tokens(text, return_tensors="pt")
        labels = tokens("I was", return_tensors="pt")["input_ids"]
        if name == "mbart":
            labels[0, -1] = first
        decoder = torch.cat([torch.tensor([[first]]), labels[:, :-1]], dim=1)
        with torch.no_grad():
            out = theirs.generate(
                **inputs, do_sample=False, max_new_tokens=9, use_cache=False, forced_eos_token_id=None
            )
            logits = theirs(**inputs, decoder_input_ids=decoder).logits.log_softmax(-1)
        expected.append(tokens.decode(out[0], skip_special_tokens=True))
        scores.append(logits[0].gather(1, labels[0][:, None]).sum().item())
    found = ours.generate(texts, max_tokens=9, start=start)
    assert [text.strip() for text in found] == [text.strip() for text in expected]
    target = "I was ro_RO" if name == "mbart" else "I was"
    np.testing.assert_allclose(ours.score([(text, target) for text in texts]), scores, rtol=1e-4)
