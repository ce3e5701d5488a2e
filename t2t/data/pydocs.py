"""The embedded corpus: Python's language reference and the docstrings of its standard library, two million characters.

Nothing is downloaded and nothing is shipped: the reference topics come from `pydoc_data.topics`, the docstrings from
the sources of the running interpreter, parsed with `ast` and never imported. Standard library only, no TensorFlow.

Two versions of Python have slightly different texts; on one version everything here is a constant: the order (language
topics by name, then files by path, then position in the file), the text, and the split of each document, which is a
hash of its text. A paragraph of 80 characters or more is kept where it occurs first and dropped elsewhere, so that no
text of consequence stands on both sides of a split.
"""

import ast
import dataclasses
import functools
import hashlib
import importlib
import os
import re
import sysconfig
import tokenize
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

Kind = Literal["module", "class", "function", "language"]
Split = Literal["train", "validation", "test"]

SPLITS: tuple[Split, ...] = ("train", "validation", "test")

SKIPPED_DIRECTORIES = frozenset(
    {"site-packages", "dist-packages", "__pycache__", "test", "tests", "idle_test", "lib2to3", "pydoc_data"}
)
"""Installed packages, caches, tests (English of another kind) and lib2to3's deliberately broken fixtures."""

MIN_REPEATED_PARAGRAPH = 80  # characters from which on a paragraph may occur only once in the corpus
MAX_SECTION = 1000  # characters of one document cut from a language topic
MIN_CHARACTERS = 200_000  # a complete interpreter has ten times as many: less means that sources were stripped

_KIND_OF_NODE: dict[type[ast.AST], Kind] = {
    ast.Module: "module",
    ast.ClassDef: "class",
    ast.FunctionDef: "function",
    ast.AsyncFunctionDef: "function",
}
HEADING = re.compile(r"^.+\n(\*{3,}|={3,}|-{3,}|~{3,}|\^{3,}|\"{3,})$")
"""A paragraph that is a line of text with a rule under it."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Document:
    """One docstring, or one section of a language topic.

    Attributes:
      text: cleaned of indentation, paragraphs separated by an empty line.
      kind: what it documents.
      module: dotted name of the module it stands in (`email.message`), or of the topic (`context-managers`).
      name: dotted name inside the module (`Message.get_payload`), empty for modules and topics.
    """

    text: str
    kind: Kind
    module: str
    name: str = ""

    @property
    def package(self) -> str:
        """The top-level package of a docstring (`email`), without the mark of a pure-Python twin (`_pydecimal`)."""
        top = self.module.partition(".")[0]
        return top.removeprefix("_py") if top.startswith("_py") else top


def normalise(text: str) -> str:
    r"""Text without differences of case and spacing: what "the same text" means here.

    Example:
      >>> normalise("Return  the\n  Name.")
      'return the name.'
    """
    return " ".join(text.split()).lower()


def split_of(text: str, *, validation: float = 0.08, test: float = 0.08) -> Split:
    """The split a text belongs to: a function of its normalised text alone, the same on every machine.

    Args:
      text: any text.
      validation: fraction of texts held out for validation, in [0, 1].
      test: fraction of texts held out for testing, in [0, 1].
    """
    digest = hashlib.sha256(normalise(text).encode("utf-8")).digest()
    position = int.from_bytes(digest[:8], "big") / 2**64
    if position < test:
        return "test"
    return "validation" if position < test + validation else "train"


def paragraphs(text: str) -> list[str]:
    """The blocks of a text that empty lines separate."""
    return [block for block in re.split(r"\n[ \t]*\n", text) if block.strip()]


def read_docstrings(source: str, *, module: str) -> Iterator[Document]:
    r"""The docstrings of one source file in the order of their lines; the code is parsed, never run.

    Args:
      source: Python source text.
      module: dotted name to record.

    Raises:
      SyntaxError: where `source` is not the running interpreter's Python.

    Example:
      >>> [(d.kind, d.name, d.text) for d in read_docstrings('def f():\n    "Do it."', module="m")]
      [('function', 'f', 'Do it.')]
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes in old sources are not our concern
        tree = ast.parse(source)
    pending: list[tuple[ast.AST, str]] = [(tree, "")]
    while pending:
        node, scope = pending.pop()
        kind = _KIND_OF_NODE.get(type(node))
        if kind is not None:
            name = getattr(node, "name", "")
            scope = f"{scope}.{name}" if scope else name
            text = ast.get_docstring(node)  # type: ignore[arg-type]
            if text and text.strip():
                yield Document(text=text.strip(), kind=kind, module=module, name=scope)
        statements: list[ast.AST] = []
        for field in ("body", "handlers", "orelse", "finalbody"):  # only statements can hold definitions
            value = getattr(node, field, None)
            statements.extend(value if isinstance(value, list) else ())
        pending.extend((statement, scope) for statement in reversed(statements))


def read_library(directory: Path) -> Iterator[Document]:
    """The docstrings of every readable source file under `directory`, files in the order of their paths."""
    for folder, subfolders, files in os.walk(directory):
        subfolders[:] = sorted(name for name in subfolders if name not in SKIPPED_DIRECTORIES)
        for file in sorted(name for name in files if name.endswith(".py")):
            path = Path(folder, file)
            parts = path.relative_to(directory).with_suffix("").parts
            module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            try:
                with tokenize.open(path) as stream:  # honours the encoding a file declares
                    yield from read_docstrings(stream.read(), module=module)
            except (SyntaxError, UnicodeDecodeError):
                continue  # templates and deliberately broken files


def read_topics(topics: Mapping[str, str]) -> Iterator[Document]:
    """The sections of the language topics by name, long ones cut between paragraphs at `MAX_SECTION` characters.

    Many topics repeat parts of others (`for` stands in `compound` too); `without_repeats` removes them.
    """
    for topic in sorted(topics):
        section: list[str] = []
        for block in paragraphs(topics[topic]):
            long = sum(map(len, section)) + len(block) > MAX_SECTION
            if section and (long or HEADING.match(block)):
                yield Document(text="\n\n".join(section), kind="language", module=topic)
                section = []
            section.append(block)
        if section:
            yield Document(text="\n\n".join(section), kind="language", module=topic)


def without_repeats(documents: Iterator[Document]) -> Iterator[Document]:
    """The documents without texts, or paragraphs of 80 characters and more, that stood in an earlier one."""
    seen: set[str] = set()
    for document in documents:
        kept = []
        for block in paragraphs(document.text):
            key = normalise(block)
            if len(key) >= MIN_REPEATED_PARAGRAPH:
                if key in seen:
                    continue
                seen.add(key)
            kept.append(block)
        text = "\n\n".join(kept)
        key = normalise(text)
        if key and (key not in seen or (len(kept) == 1 and len(key) >= MIN_REPEATED_PARAGRAPH)):
            seen.add(key)
            yield dataclasses.replace(document, text=text)


def standard_library() -> Path:
    """The folder of the running interpreter's own sources."""
    return Path(sysconfig.get_path("stdlib"))


@functools.cache
def documents() -> tuple[Document, ...]:
    """The whole corpus, read once per process (about five seconds).

    Raises:
      RuntimeError: where the interpreter came without its sources or its language topics.
    """
    return load(directory=standard_library(), topics=_language_topics(), min_characters=MIN_CHARACTERS)


def load(*, directory: Path, topics: Mapping[str, str], min_characters: int = 0) -> tuple[Document, ...]:
    """The corpus of one folder of sources and one table of topics.

    Args:
      directory: the sources, searched recursively.
      topics: text by topic name.
      min_characters: the docstrings must have at least so many characters together.

    Raises:
      RuntimeError: where they have fewer.
    """
    language = list(read_topics(topics))
    docstrings = list(read_library(directory))
    characters = sum(len(document.text) for document in docstrings)
    if characters < min_characters:
        raise RuntimeError(
            f"The docstrings under {directory} have {characters:,} characters, at least {min_characters:,} are needed: "
            "this Python came without the sources of its standard library, from which the pydocs corpus is read. Use "
            "a complete Python (python.org, conda, uv python install) or text of your own (--data.files 'books/*.txt')."
        )
    return tuple(without_repeats(iter(language + docstrings)))


def _language_topics() -> Mapping[str, str]:
    try:
        return importlib.import_module("pydoc_data.topics").topics
    except ImportError as error:
        raise RuntimeError(
            "This Python came without pydoc_data.topics, the language reference of the pydocs corpus. Use a complete "
            "Python (python.org, conda, uv python install), or text of your own (--data.files 'books/*.txt')."
        ) from error


@functools.cache
def split_documents(split: str) -> tuple[Document, ...]:
    """The documents of one split.

    Raises:
      ValueError: for an unknown split.
    """
    if split not in SPLITS:
        raise ValueError(f"split={split!r}: pydocs has {', '.join(SPLITS)}")
    return tuple(document for document in documents() if split_of(document.text) == split)
