"""Reading vocabularies: which kind a directory or a file holds."""

import json
from pathlib import Path

from t2t.vocabulary import base, byte_level, sentencepiece_model, tokenizers_library

FAIRSEQ_FILES = ("sentencepiece.bpe.model",)
SENTENCEPIECE_FILES = ("sentencepiece.model", "spiece.model", "spm.model", "tokenizer.model", *FAIRSEQ_FILES)


def load(path: Path, *, sentinels: int | None = None) -> base.Vocabulary:
    """The vocabulary of a directory or a file; `Vocabulary.load` explains the arguments."""
    if not path.exists():
        raise FileNotFoundError(f"vocabulary {path} does not exist")
    if not path.is_dir():
        return _load_file(path, sentinels)
    if (path / base.CONFIG_FILE).exists():
        return _load_own(path)
    names = _special_names(path)
    models = [path / name for name in SENTENCEPIECE_FILES if (path / name).exists()]
    tokenizer = path / tokenizers_library.TokenizerVocabulary.FILE
    if models and (not tokenizer.exists() or sentencepiece_model.is_t5_layout(models[0].read_bytes())):
        return _load_file(models[0], sentinels)
    if tokenizer.exists():
        return tokenizers_library.TokenizerVocabulary(tokenizer.read_text(encoding="utf-8"), names=names)
    for name in ("vocab.json", "vocab.txt"):
        if (path / name).exists():
            return _load_file(path / name, sentinels)
    known = (base.CONFIG_FILE, *SENTENCEPIECE_FILES, tokenizer.name, "vocab.json with merges.txt", "vocab.txt")
    raise FileNotFoundError(f"{path} holds no vocabulary; looked for {', '.join(known)}")


def _load_own(directory: Path) -> base.Vocabulary:
    config = json.loads((directory / base.CONFIG_FILE).read_text(encoding="utf-8"))
    kind, size = config.pop("kind", None), config.pop("size", None)
    if kind == byte_level.ByteVocabulary.kind:
        loaded = byte_level.ByteVocabulary(**config)
    elif kind == sentencepiece_model.SentencePieceVocabulary.kind:
        model = (directory / sentencepiece_model.SentencePieceVocabulary.FILE).read_bytes()
        loaded = sentencepiece_model.SentencePieceVocabulary(model, **config)
    elif kind == tokenizers_library.TokenizerVocabulary.kind:
        definition = (directory / tokenizers_library.TokenizerVocabulary.FILE).read_text(encoding="utf-8")
        loaded = tokenizers_library.TokenizerVocabulary(definition, **config)
    else:
        kinds = [c.kind for c in base.Vocabulary.__subclasses__()]
        raise ValueError(f"{directory / base.CONFIG_FILE} has kind {kind!r}; possible are {kinds}")
    if size is not None and size != loaded.size:
        raise ValueError(f"{directory} says {size} ids but its files hold {loaded.size}: they do not belong together")
    return loaded


def _load_file(path: Path, sentinels: int | None) -> base.Vocabulary:
    names = _special_names(path.parent)
    if path.name == base.CONFIG_FILE:
        return _load_own(path.parent)
    if path.name in ("vocab.json", "merges.txt"):
        return tokenizers_library.TokenizerVocabulary(
            tokenizers_library.byte_level_bpe_definition(path.parent, names), names=names
        )
    if path.suffix == ".json":
        return tokenizers_library.TokenizerVocabulary(path.read_text(encoding="utf-8"), names=names)
    if path.suffix == ".txt":
        return tokenizers_library.TokenizerVocabulary(tokenizers_library.wordpiece_definition(path), names=names)
    fairseq, model = path.name in FAIRSEQ_FILES, path.read_bytes()
    uncased = sentencepiece_model.is_uncased(model)
    model = sentencepiece_model.with_pieces(model, sentinels=0 if fairseq else sentinels, mask=fairseq)
    return sentencepiece_model.SentencePieceVocabulary(model, fairseq=fairseq, uncased=uncased)


def _special_names(directory: Path) -> dict[str, str]:
    """Names of special tokens by role from a Hugging Face tokenizer_config.json, {} if there is none."""
    path = directory / "tokenizer_config.json"
    if not path.exists():
        return {}
    config = json.loads(path.read_text(encoding="utf-8"))
    names = {}
    for role, keys in {
        "pad": ["pad"],
        "bos": ["bos", "cls"],
        "eos": ["eos", "sep"],
        "unk": ["unk"],
        "mask": ["mask"],
    }.items():
        for key in keys:
            token = config.get(f"{key}_token")
            token = token["content"] if isinstance(token, dict) else token
            if token and role not in names:
                names[role] = token
    return names
