"""What SentencePiece models become; that the ids are the same is tested with the tokenizer files."""

import json

import pytest
import tokenizers

from t2t import vocabulary as vocabularies
from t2t.hf import conversion
from tests.hf import lines


@pytest.fixture(scope="module")
def trained():
    """A vocabulary of ours."""
    return vocabularies.train_sentencepiece(lines.corpus(), size=1200)


def test_scores_of_our_vocabularies_add_exactly(trained):
    proto = conversion.model_proto(trained.model)
    assert all(piece.score * 256 == round(piece.score * 256) for piece in proto.pieces)


def test_models_that_the_library_cannot_express_are_refused(trained):
    proto = conversion.model_proto(trained.model)
    proto.pieces[700].type = type(proto.pieces[0]).UNUSED
    with pytest.raises(ValueError, match="unused pieces"):
        conversion.from_sentencepiece(vocabularies.SentencePieceVocabulary(proto.SerializeToString()))
    proto = conversion.model_proto(trained.model)
    proto.trainer_spec.model_type = proto.trainer_spec.WORD
    with pytest.raises(ValueError, match="unigram and BPE"):
        conversion.from_sentencepiece(vocabularies.SentencePieceVocabulary(proto.SerializeToString()))


def test_sentinels_and_the_mask_take_the_space_before_them(trained):
    added = {token["content"]: token for token in conversion.from_sentencepiece(trained)["added_tokens"]}
    assert {name for name, token in added.items() if token["lstrip"]} == {
        "<mask>", *(f"<extra_id_{i}>" for i in range(100)),
    }  # fmt: skip
    assert added["<extra_id_0>"]["id"] == trained.size - 1
    assert added["</s>"]["id"] == 1


def test_mode_tokens_are_one_token_there_too():
    ours = vocabularies.train_sentencepiece(lines.corpus(), size=800, sentinels=300, modes=True)
    for vocabulary in (ours, vocabularies.ByteVocabulary(modes=True)):
        convert = conversion.from_bytes if vocabulary.kind == "bytes" else conversion.from_sentencepiece
        theirs = tokenizers.Tokenizer.from_str(json.dumps(convert(vocabulary)))
        for text in ("[NLU] a text <extra_id_99>", "[S2S]", "two words[NLG]", "[NLU"):
            assert theirs.encode(text).ids == vocabulary.encode(text), text


def test_the_map_of_our_vocabularies_is_nfkc_but_for_a_tilde(trained):
    normalizers = conversion.from_sentencepiece(trained)["normalizer"]["normalizers"]
    kinds = [step["type"] for step in normalizers]
    assert "NFKC" in kinds and kinds.index("NFKC") < kinds.index("Precompiled")
    carried = [step["pattern"]["String"] for step in normalizers[: kinds.index("NFKC")]]
    assert "\uff5e" in carried


def test_a_vocabulary_that_knows_hebrew_points_is_not_sorted_by_nfkc(trained):
    proto = conversion.model_proto(trained.model)
    proto.pieces[900].piece = "\u05e9\u05bc\u05c1"
    pointed = vocabularies.SentencePieceVocabulary(proto.SerializeToString())
    kinds = [step["type"] for step in conversion.from_sentencepiece(pointed)["normalizer"]["normalizers"]]
    assert "NFKC" not in kinds and "Precompiled" in kinds


def test_bytes_are_tokens_of_their_own():
    definition = conversion.from_bytes(vocabularies.ByteVocabulary(sentinels=2))
    assert definition["model"]["merges"] == []
    assert definition["model"]["vocab"]["A"] == ord("A") + 3
    assert [token["content"] for token in definition["added_tokens"]] == [
        "<pad>", "</s>", "<unk>", "<mask>", "<extra_id_1>", "<extra_id_0>",
    ]  # fmt: skip
