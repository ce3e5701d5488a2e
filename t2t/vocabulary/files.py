"""Reading vocabularies: which kind a directory or a file holds."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from t2t import file_checks
from t2t.vocabulary import base, byte_level, moses_bpe, published, reading, sentencepiece_model, tokenizers_library

SENTENCEPIECE_FILES = ("sentencepiece.model", "spiece.model", "spm.model", "tokenizer.model", *published.FAIRSEQ_FILES)
FILES = (
    base.CONFIG_FILE, tokenizers_library.TokenizerVocabulary.FILE, *SENTENCEPIECE_FILES, "vocab.json", "vocab.txt",
)  # fmt: skip
"""Files of a directory that hold a vocabulary, the most complete first; vocab.json with merges.txt beside it."""

Read = TypeVar("Read", bound=base.Vocabulary)

_TOKEN = (str, dict, type(None))
_FLAG = (bool, type(None))
KINDS: dict[str, tuple[type, ...]] = {
    "tokenizer_class": (str, type(None)),
    "additional_special_tokens": (list, type(None)),
    "added_tokens_decoder": (dict, type(None)),
    "extra_ids": (int, type(None)),
    **dict.fromkeys(("do_lower_case", "strip_accents", "tokenize_chinese_chars", "add_prefix_space"), _FLAG),
    **dict.fromkeys(("keep_accents", "split_by_punct", "do_lowercase_and_remove_accent"), _FLAG),
    **dict.fromkeys((f"{name}_token" for name in ("pad", "bos", "cls", "eos", "sep", "unk", "mask")), _TOKEN),
}
"""What tokenizer_config.json and special_tokens_map.json may say under the names that are read."""

BYTES_CLASS = "ByT5Tokenizer"
"""The class of transformers whose vocabulary is bytes: a repository that names it needs no file of a vocabulary."""


def load(path: Path, *, sentinels: int | None = None) -> base.Vocabulary:
    """The vocabulary of a directory or a file; `Vocabulary.load` explains the arguments."""
    if not path.exists() and not file_checks.is_dangling(path):
        raise FileNotFoundError(f"vocabulary {path} does not exist")
    if not path.is_dir():
        return _load_file(path, sentinels)
    found = _held(path)
    if not found and _class_name(path) == BYTES_CLASS:
        return _bytes(path)
    if not found:
        missing = f"{path / 'vocab.json'} needs merges.txt beside it; " if (path / "vocab.json").exists() else ""
        known = ", ".join(FILES).replace("vocab.json", "vocab.json with merges.txt")
        raise FileNotFoundError(f"{path} holds no vocabulary; {missing}looked for {known}")
    first, *others = found
    # T5's tokenizer.json puts a space after sentinels; its SentencePiece model is the truth where it has all tokens.
    if first.name == tokenizers_library.TokenizerVocabulary.FILE and others and others[0].name in SENTENCEPIECE_FILES:
        with _reading(others[0]):
            is_t5 = sentencepiece_model.is_t5_layout(reading.read_bytes(others[0]))
        if is_t5:
            vocabulary = _load_file(others[0], sentinels)
            with _reading(first):
                lacking = _lacking(vocabulary, _added(path))
            return vocabulary if not lacking else _load_file(first, sentinels)
    return _load_file(first, sentinels)


def holds(directory: Path) -> bool:
    """Whether a directory has the files of a vocabulary, which are not read, or says that it needs none."""
    return bool(_held(directory)) or _class_name(directory) == BYTES_CLASS


def _held(directory: Path) -> list[Path]:
    """The files of a directory that are a vocabulary each, the most complete first; else links that lead nowhere."""
    files = [directory / name for name in FILES]
    found = [file for file in files if file.exists()] or [file for file in files if file_checks.is_dangling(file)]
    return [file for file in found if file.name != "vocab.json" or (directory / "merges.txt").exists()]


def _load_own(directory: Path) -> base.Vocabulary:
    config = reading.read_object(directory / base.CONFIG_FILE)
    kind, size, start_id = (config.pop(name, None) for name in ("kind", "size", "start_id"))
    if kind == byte_level.ByteVocabulary.kind:
        loaded = byte_level.ByteVocabulary(**config)
    elif kind == sentencepiece_model.SentencePieceVocabulary.kind:
        model = reading.read_bytes(directory / sentencepiece_model.SentencePieceVocabulary.FILE)
        loaded = sentencepiece_model.SentencePieceVocabulary(model, **config)
    elif kind == tokenizers_library.TokenizerVocabulary.kind:
        definition = reading.read_text(directory / tokenizers_library.TokenizerVocabulary.FILE)
        loaded = tokenizers_library.TokenizerVocabulary(definition, **config)
    elif kind == moses_bpe.MosesVocabulary.kind:
        loaded = moses_bpe.MosesVocabulary(*_vocab_and_merges(directory), **config)
    else:
        kinds = [c.kind for c in base.Vocabulary.__subclasses__()]
        raise ValueError(f"{directory / base.CONFIG_FILE} has kind {kind!r}; possible are {kinds}")
    if size is not None and size != loaded.size:
        raise ValueError(f"{directory} says {size} ids but its files hold {loaded.size}: they do not belong together")
    return loaded if start_id is None else loaded.starting_with(start_id)


def _load_file(path: Path, sentinels: int | None) -> base.Vocabulary:
    with _reading(path):
        return _read_file(path, sentinels)


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Names the path in errors of what is read from it."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:  # the libraries that read what is damaged raise errors of many kinds
        plain = isinstance(error, ValueError | RuntimeError) or type(error) is Exception
        reason = f"{error}" if plain else f"{type(error).__name__}, {error}"
        raise ValueError(f"{path} cannot be read as a vocabulary: {reason}") from error


def _read_file(path: Path, sentinels: int | None) -> base.Vocabulary:
    if path.name == base.CONFIG_FILE:
        return _load_own(path.parent)
    config = _tokenizer_config(path.parent)
    names = _special_names(config)
    if path.suffix == ".json" and path.name != "vocab.json":
        return tokenizers_library.TokenizerVocabulary(reading.read_text(path), names=names)
    if path.name in ("vocab.json", "merges.txt"):
        if vocabulary := _moses(path.parent, names, config):
            return vocabulary
        definition = tokenizers_library.bpe_definition(path.parent, names, config)
    elif path.suffix == ".txt":
        definition = tokenizers_library.wordpiece_definition(path, names, config)
    else:
        vocabulary = published.read(path, sentinels=sentinels, config=config)
        # A tokenizer.json holds the tokens that were added; without one nothing says how text with them is read.
        has_both = (path.parent / tokenizers_library.TokenizerVocabulary.FILE).exists()
        return vocabulary if has_both else _with_all_tokens(vocabulary, path.parent)
    added = path.parent / "added_tokens.json"
    if added.exists():
        others = (_content(token) for token in config.get("additional_special_tokens") or ())
        listed = reading.read_object(added)
        reading.check_ids(added, listed)
        definition = tokenizers_library.with_added_tokens(definition, listed, special={*names.values(), *others})
    return tokenizers_library.TokenizerVocabulary(definition, names=names)


def _vocab_and_merges(directory: Path) -> tuple[str, str]:
    """The texts of a vocab.json and the merges.txt beside it."""
    vocab, merges = (reading.read_text(directory / name) for name in ("vocab.json", "merges.txt"))
    return vocab, merges


def _moses(directory: Path, names: dict[str, str], config: dict[str, Any]) -> moses_bpe.MosesVocabulary | None:
    """The vocabulary of a vocab.json and merges.txt whose words the Moses toolkit cuts; None where it is another."""
    if not all((directory / name).exists() for name in ("vocab.json", "merges.txt")):
        return None
    ids = reading.read_object(directory / "vocab.json")
    reading.check_ids(directory / "vocab.json", ids)
    if not moses_bpe.is_one(ids):
        return None
    vocab, merges = _vocab_and_merges(directory)
    if (name := _class_name(directory)) not in ("", moses_bpe.CLASS):
        raise ValueError(f"it is read by {name}, which cuts words in its own way; t2t knows that of {moses_bpe.CLASS}")
    lowercase = config.get("do_lowercase_and_remove_accent", True)
    return _with_all_tokens(moses_bpe.MosesVocabulary(vocab, merges, lowercase=lowercase, names=names), directory)


def _bytes(directory: Path) -> byte_level.ByteVocabulary:
    """The bytes of a directory that names their class, with as many sentinels as it says."""
    with _reading(directory):
        said = _tokenizer_config(directory).get("extra_ids")
        sentinels = 125 if said is None else said
        return _with_all_tokens(byte_level.ByteVocabulary(sentinels=sentinels, mask=False, ascending=True), directory)


def _class_name(directory: Path) -> str:
    """The tokenizer of transformers that a directory names, without "Fast"; '' where it names none."""
    for name in ("tokenizer_config.json", "config.json"):
        if (directory / name).exists():
            try:
                said = reading.read_object(directory / name).get("tokenizer_class")
            except ValueError:
                continue  # who needs the file says so
            if isinstance(said, str):
                return re.sub("Fast\\Z", "", said)
    return ""


def _with_all_tokens(vocabulary: Read, directory: Path) -> Read:
    """The vocabulary, which must hold all tokens that the files of the directory name one by one."""
    if lacking := _lacking(vocabulary, _added(directory)):
        raise ValueError(
            f"tokens were added to the model that it does not hold: {', '.join(lacking[:5])}. Put the "
            "tokenizer.json that transformers writes (AutoTokenizer.from_pretrained(...).save_pretrained(...)) "
            "beside it"
        )
    return vocabulary


def _added(directory: Path) -> dict[str, int]:
    """The tokens that the files of a directory name one by one, with their ids: special ones and those added later."""
    file = directory / tokenizers_library.TokenizerVocabulary.FILE
    if file.exists():
        listed = reading.read_object(file).get("added_tokens") or []
        reading.check(file, "added_tokens", listed, (list,))
        for token in listed:
            reading.check(file, "one of its added_tokens", token, (dict,))
        ids = {token.get("content"): token.get("id") for token in listed}
    else:
        file = directory / "tokenizer_config.json"
        by_id = _tokenizer_config(directory).get("added_tokens_decoder") or {}
        ids = {_content(token): int(number) if number.isdecimal() else number for number, token in by_id.items()}
        if (directory / "added_tokens.json").exists():
            file = directory / "added_tokens.json"
            ids |= reading.read_object(file)
    reading.check_ids(file, ids)
    return ids


def _lacking(vocabulary: base.Vocabulary, added: dict[str, int]) -> list[str]:
    """Those of the tokens that a vocabulary does not have under their ids."""
    pieces = vocabulary.pieces()
    return [name for name, i in added.items() if i >= len(pieces) or pieces[i].removeprefix("▁") != name]


def _tokenizer_config(directory: Path) -> dict[str, Any]:
    """What tokenizer_config.json says, and special_tokens_map.json where that says nothing; {} without them."""
    config = {}
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        if (directory / name).exists():
            content = reading.read_object(directory / name)
            for key in sorted(KINDS.keys() & content.keys()):
                _check(directory / name, key, content[key])
            config |= {key: value for key, value in content.items() if value is not None or key not in config}
    return config


def _check(path: Path, key: str, value: Any) -> None:
    """Nothing, where a value of a file is what `KINDS` says, and the tokens in it have texts."""
    reading.check(path, key, value, KINDS[key])
    tokens = value if isinstance(value, list) else []
    if key == "added_tokens_decoder":
        tokens = (value or {}).values()
    elif KINDS[key] == _TOKEN:
        tokens = [value]
    for token in tokens:
        reading.check(path, key, token, _TOKEN)
        if isinstance(token, dict):
            reading.check(path, f"content of {key}", token.get("content"), (str,))
    if key == "extra_ids" and value is not None and not 0 <= value < reading.MAX_IDS:
        raise ValueError(f"{path} says extra_ids: {value}; possible are 0 to {reading.MAX_IDS - 1}")


def _content(token: Any) -> Any:
    """The text of a token that a file names alone, or with what else there is to say of it."""
    return token.get("content") if isinstance(token, dict) else token


def _special_names(config: dict[str, Any]) -> dict[str, str]:
    """Names of special tokens by role."""
    said = {key: _content(token) for key, token in config.items() if key.endswith("_token")}
    names = {}
    for role, keys in {
        "pad": ["pad"],
        "bos": ["bos", "cls"],
        "eos": ["eos", "sep"],
        "unk": ["unk"],
        "mask": ["mask"],
    }.items():
        for key in keys:
            token = said.get(f"{key}_token")
            if token and role not in names:
                names[role] = token
    return names | base.framing_names(said.get(f"{key}_token") for key in ("cls", "sep"))
