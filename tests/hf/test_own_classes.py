"""Tokenizers of the families: what our exports give is what the family's own class gives in transformers 4.57."""

import dataclasses
import json
import pathlib
import random
import shutil
from collections.abc import Callable
from typing import Any

import pytest
import sentencepiece

from t2t import families, vocabulary
from t2t.hf import frames, tokenizer
from tests.hf import lines, version4
from tests.shared_data import shared_data

pytestmark = [pytest.mark.hf, pytest.mark.hf4, pytest.mark.slow]

ENCODE = """
def encoded(tokenizer, texts):
    pair = tokenizer("a text", "another one")
    padded = tokenizer(["a text", "a much longer text"], padding=True)
    return {
        "singles": tokenizer(texts)["input_ids"],
        "pair": dict(pair),
        "padded": padded["input_ids"],
        "plain": tokenizer(texts, add_special_tokens=False)["input_ids"],
        "ids": {name: getattr(tokenizer, f"{name}_token_id") for name in ("pad", "mask", "unk")},
    }
answer = {}
for name, (path, own, ours, saved) in given["cases"].items():
    answer[name] = {"ours": encoded(transformers.AutoTokenizer.from_pretrained(ours), given["texts"])}
    for kind, name_of_class in {"own": own, "fast": own.removesuffix("Fast") + "Fast"}.items():
        tokenizer = getattr(transformers, name_of_class).from_pretrained(path)
        tokenizer.save_pretrained(f"{saved}-{kind}")
        answer[name][kind] = encoded(tokenizer, given["texts"])
"""


@dataclasses.dataclass(frozen=True)
class Repository:
    """What a repository of a family holds, and the class of 4.57 that reads it."""

    own: str
    write: Callable[[pathlib.Path], None]
    config: dict[str, Any] = dataclasses.field(default_factory=dict)
    family: str = ""
    """Where the name of the repository is not that of its family."""


def copied(folder: str, *names: str) -> Callable[[pathlib.Path], None]:
    def write(directory: pathlib.Path) -> None:
        for name in names:
            shutil.copyfile(shared_data("tokenizers", folder, name), directory / name)

    return write


def fairseq(directory: pathlib.Path) -> None:
    model = shared_data("tokenizers", "small_test_spm", "hf_test_sentencepiece.model")
    shutil.copyfile(model, directory / "sentencepiece.bpe.model")


def mpnet(directory: pathlib.Path) -> None:
    pieces = shared_data("tokenizers", "bert-base-cased", "vocab.txt").read_text(encoding="utf-8").splitlines()
    pieces = ["<s>", "<pad>", "</s>", "<unk>", *pieces, "<mask>"]
    (directory / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8")


def byte_level(directory: pathlib.Path, *, first: list[str], last: list[str]) -> None:
    shutil.copyfile(shared_data("tokenizers", "gpt2", "merges.txt"), directory / "merges.txt")
    pieces = json.loads(shared_data("tokenizers", "gpt2", "vocab.json").read_text(encoding="utf-8"))
    pieces = [*first, *(piece for piece in pieces if piece != "<|endoftext|>"), *last]
    (directory / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(pieces)}), encoding="utf-8")


def trained(name: str, **settings: Any) -> Callable[[pathlib.Path], None]:
    def write(directory: pathlib.Path) -> None:
        with open(directory / name, "wb") as file:
            settings_in_all = {"vocab_size": 800, "model_type": "unigram", "minloglevel": 2, **settings}
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(lines.corpus()[:3000]), model_writer=file, **settings_in_all
            )

    return write


def grown(write: Callable[[pathlib.Path], None]) -> Callable[[pathlib.Path], None]:
    """The same with tokens that were added, which slow tokenizers keep in a file of their own."""

    def both(directory: pathlib.Path) -> None:
        write(directory)
        size = vocabulary.Vocabulary.load(directory).size
        (directory / "added_tokens.json").write_text(json.dumps({"<new>": size, "Xqz": size + 1}))

    return both


BERT_NAMES = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]",
              "mask_token": "[MASK]"}  # fmt: skip
cased = copied("bert-base-cased", "vocab.txt")
roberta = copied("roberta", "vocab.json", "merges.txt")
REPOSITORIES = {
    "bert": Repository("BertTokenizerFast", cased, {"do_lower_case": False}),
    "electra": Repository("ElectraTokenizerFast", cased, {"do_lower_case": True}),
    "distilbert": Repository("DistilBertTokenizerFast", cased, {"do_lower_case": True, "strip_accents": False}),
    "mpnet": Repository("MPNetTokenizerFast", mpnet, {"unk_token": "[UNK]", "do_lower_case": True}),
    "roberta": Repository("RobertaTokenizerFast", roberta),
    "grown bert": Repository("BertTokenizerFast", grown(cased), {"do_lower_case": False}, family="bert"),
    "grown uncased bert": Repository("BertTokenizerFast", grown(cased), {"do_lower_case": True}, family="bert"),
    "grown roberta": Repository("RobertaTokenizerFast", grown(roberta), family="roberta"),
    "bart": Repository("BartTokenizerFast", roberta),
    "deberta": Repository(
        "DebertaTokenizerFast",
        lambda path: byte_level(path, first=["[PAD]", "[CLS]", "[SEP]", "[UNK]"], last=["[MASK]"]),
        BERT_NAMES,
    ),
    "opt": Repository(
        "GPT2Tokenizer",
        lambda path: byte_level(path, first=["<s>", "<pad>", "</s>", "<unk>"], last=[]),
        {"bos_token": "</s>", "eos_token": "</s>", "unk_token": "</s>", "pad_token": "<pad>", "add_bos_token": True},
    ),
    "xlm-roberta": Repository("XLMRobertaTokenizer", fairseq),
    "mbart": Repository("MBartTokenizer", fairseq),
    "albert": Repository("AlbertTokenizer", copied("albert", "spiece.model")),
    "xlnet": Repository(
        "XLNetTokenizer",
        trained("spiece.model", unk_id=0, bos_id=1, eos_id=2, pad_id=5,
                control_symbols=["<cls>", "<sep>", "<mask>", "<eod>", "<eop>"]),
    ),
    "deberta-v2": Repository(
        "DebertaV2Tokenizer",
        trained("spm.model", pad_id=0, bos_id=1, eos_id=2, unk_id=3, pad_piece="[PAD]", bos_piece="[CLS]",
                eos_piece="[SEP]", unk_piece="[UNK]"),
        {"do_lower_case": False},
    ),
}  # fmt: skip
RUNS = ("==", "**", "--", "..", "##")  # have several segmentations that are equally good
MASKED = [
    f"a{before}{token}{after}b"
    for token in ("<mask>", "[MASK]", "<new>", "<NEW>", "Xqz")
    for before in ("", " ")
    for after in ("", " ")
]
TEXTS = [*(line for line in lines.corpus()[:500] if not any(run in line for run in RUNS)), *lines.WORDS, "a  b",
         " leading", "trailing ", "9,000 cats", "", "HELLO, World!", *MASKED]  # fmt: skip


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """What the own class gives and what 4.57 gives with our export, and the directories."""
    cases = {}
    for name, repository in REPOSITORIES.items():
        root = tmp_path_factory.mktemp(name.replace("-", "_").replace(" ", "_"))
        for part in ("theirs", "ours"):
            (root / part).mkdir()
        repository.write(root / "theirs")
        config = {"tokenizer_class": repository.own.removesuffix("Fast"), **repository.config}
        (root / "theirs" / "tokenizer_config.json").write_text(json.dumps(config))
        write(name, root / "theirs", root / "ours")
        cases[name] = (str(root / "theirs"), repository.own, str(root / "ours"), str(root / "saved"))
    return version4.run(ENCODE, cases=cases, texts=TEXTS), cases


def write(name: str, source: pathlib.Path, target: pathlib.Path) -> None:
    family = families.by_model_type(REPOSITORIES[name].family or name)
    words = vocabulary.Vocabulary.load(source)
    around = frames.around(family, words, start_id=words.start_id)
    side = family.padding_side or "right"
    tokenizer.write(target, words, **around, input_names=family.input_names, padding_side=side)


@pytest.mark.parametrize("name", REPOSITORIES)
def test_an_export_reads_texts_as_the_own_class(opened, name):
    own, ours = (opened[0][name][kind] for kind in ("own", "ours"))
    assert ours["singles"] == own["singles"]
    assert ours["pair"]["input_ids"] == own["pair"]["input_ids"]
    assert ours["padded"] == own["padded"]
    assert {key: ours["pair"][key] for key in own["pair"]} == own["pair"]
    assert ours["ids"] == own["ids"]


@pytest.mark.parametrize("name", REPOSITORIES)
def test_an_export_holds_the_files_of_the_own_class_too(opened, name):
    """transformers 5 writes them no longer; slow tokenizers of 4 and other programs read nothing else."""
    theirs, ours = (pathlib.Path(opened[1][name][place]) for place in (0, 2))
    own = {path.name for path in theirs.iterdir()} - {"tokenizer_config.json", "added_tokens.json"}
    assert own and own <= {path.name for path in ours.iterdir()}


@pytest.mark.parametrize("name", REPOSITORIES)
def test_transformers_5_reads_our_export_so_too(opened, name):
    import transformers

    found, cases = opened
    tokens = transformers.AutoTokenizer.from_pretrained(cases[name][2])
    own = found[name]["own"]
    assert tokens(TEXTS)["input_ids"] == own["singles"]
    assert dict(tokens("a text", "another one")) == own["pair"]
    assert tokens(["a text", "a much longer text"], padding=True)["input_ids"] == own["padded"]


@pytest.mark.parametrize("name", REPOSITORIES)
def test_ids_are_the_same_from_files_and_from_what_4_57_saved(opened, name):
    found, cases = opened
    theirs, _, ours, saved = cases[name]
    texts = TEXTS + random.Random(0).sample(lines.corpus(), 100)
    words = vocabulary.Vocabulary.load(theirs)
    expected = words.encode_batch(texts)
    assert expected[: len(TEXTS)] == found[name]["own"]["plain"]
    for directory in (ours, f"{saved}-own"):
        read = vocabulary.Vocabulary.load(directory)
        assert read.encode_batch(texts) == expected
        assert (read.pad_id, read.bos_id, read.eos_id, read.mask_id) == (
            words.pad_id, words.bos_id, words.eos_id, words.mask_id)  # fmt: skip
    # Where a fast class gives other ids than the slow one, its tokenizer.json is what transformers would read.
    read = vocabulary.Vocabulary.load(f"{saved}-fast")
    assert read.encode_batch(TEXTS) == found[name]["fast"]["plain"]
    assert (read.bos_id, read.eos_id) == (words.bos_id, words.eos_id)
