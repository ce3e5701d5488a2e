import doctest
import re
import sys

import pytest

from t2t.data import pydocs

SOURCE = '''"""A module.

    With an indented second paragraph."""

class Net:
    """A net."""

    def cast(self):
        """Cast it."""

        def knot():
            "Tie a knot."

    async def haul(self): "Haul it in."

if True:
    try:
        def branch(): "Hidden in a branch."
    except ImportError:
        def fallback(): """Hidden in a handler."""

def silent(): pass
'''


def test_docstrings_come_in_the_order_of_their_lines_with_their_scopes():
    found = [(d.kind, d.name, d.text) for d in pydocs.read_docstrings(SOURCE, module="boat.net")]
    assert found == [
        ("module", "", "A module.\n\nWith an indented second paragraph."),
        ("class", "Net", "A net."),
        ("function", "Net.cast", "Cast it."),
        ("function", "Net.cast.knot", "Tie a knot."),
        ("function", "Net.haul", "Haul it in."),
        ("function", "branch", "Hidden in a branch."),
        ("function", "fallback", "Hidden in a handler."),
    ]


def test_sources_are_parsed_and_never_run():
    assert not list(pydocs.read_docstrings("raise SystemExit('run')", module="m"))


def test_package_is_the_top_level_name():
    document = pydocs.Document(text="x", kind="function", module="email.message", name="f")
    assert document.package == "email"
    assert pydocs.Document(text="x", kind="module", module="_pydecimal").package == "decimal"
    assert pydocs.Document(text="x", kind="module", module="_weakrefset").package == "_weakrefset"


@pytest.fixture
def library(tmp_path):
    def write(name: str, content: str | bytes):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    write("b.py", '"""Second file."""')
    write("a/__init__.py", '"""First file."""')
    write("a/deep.py", '"""Deep file."""')
    write("a/tests/test_a.py", '"""A test."""')
    write("site-packages/other.py", '"""Installed."""')
    write("broken.py", '"""Broken.""" def')
    write("latin.py", '# -*- coding: latin-1 -*-\n"""Caf\xe9."""'.encode("latin-1"))
    write("bytes.py", b'"""Not UTF-8: \xff"""')
    write("notes.txt", "no source")
    return tmp_path


def test_library_is_read_in_order_without_tests_and_broken_files(library):
    found = [(d.module, d.text) for d in pydocs.read_library(library)]
    assert found == [("b", "Second file."), ("latin", "Café."), ("a", "First file."), ("a.deep", "Deep file.")]


def test_topics_are_cut_at_headings_and_sizes():
    text = "Loops\n*****\n\nFirst.\n\nThe for loop\n============\n\n" + "\n\n".join(["x" * 600] * 2)
    sections = [d.text for d in pydocs.read_topics({"loops": text})]
    assert sections == ["Loops\n*****\n\nFirst.", "The for loop\n============\n\n" + "x" * 600, "x" * 600]
    assert {d.kind for d in pydocs.read_topics({"loops": text})} == {"language"}


def test_repeats_are_dropped_where_they_come_second():
    long = "A paragraph that is long enough to be recognised wherever it stands, in whatever case it is written."
    texts = ["Short.", "short. ", f"One.\n\n{long}", f"Two.\n\n{long.upper()}", long, "Three.\n\nShort."]
    documents = [pydocs.Document(text=text, kind="function", module="m") for text in texts]
    kept = [d.text for d in pydocs.without_repeats(iter(documents))]
    assert kept == ["Short.", f"One.\n\n{long}", "Two.", "Three.\n\nShort."]


def test_split_is_a_function_of_the_normalised_text():
    assert pydocs.split_of("Return  the\nName") == pydocs.split_of("return the name")
    splits = [pydocs.split_of(f"text {i}") for i in range(4000)]
    for split in ("validation", "test"):
        assert 0.06 < splits.count(split) / 4000 < 0.10
    assert {pydocs.split_of(str(i), validation=0.0, test=1.0) for i in range(9)} == {"test"}


def test_stripped_sources_are_a_clear_error(tmp_path, monkeypatch):
    with pytest.raises(RuntimeError, match=r"0 characters.*without the sources.*--data.files"):
        pydocs.load(directory=tmp_path, topics={}, min_characters=1)
    with pytest.raises(RuntimeError, match="without the sources"):
        pydocs.load(directory=tmp_path / "python311.zip", topics={}, min_characters=1)
    monkeypatch.setitem(sys.modules, "pydoc_data.topics", None)
    with pytest.raises(RuntimeError, match="pydoc_data.topics.*--data.files"):
        pydocs._language_topics()


def test_unknown_split_is_refused():
    with pytest.raises(ValueError, match="train, validation, test"):
        pydocs.split_documents("dev")


def test_load_reads_topics_first(library):
    documents = pydocs.load(directory=library, topics={"for": "Loops."}, min_characters=10)
    assert [d.text for d in documents][:2] == ["Loops.", "Second file."]


@pytest.mark.slow
def test_the_corpus_of_this_interpreter():
    documents = pydocs.documents()
    assert len(documents) > 5000
    assert sum(len(d.text) for d in documents) > 1_500_000
    assert {d.kind for d in documents} == {"module", "class", "function", "language"}
    assert not {d.package for d in documents} & {"test", "lib2to3", "jax", "numpy"}

    by_split = {split: pydocs.split_documents(split) for split in pydocs.SPLITS}
    assert sum(map(len, by_split.values())) == len(documents)
    assert 0.05 < len(by_split["test"]) / len(documents) < 0.11
    texts = [{pydocs.normalise(d.text) for d in by_split[split]} for split in pydocs.SPLITS]
    blocks = [
        {
            pydocs.normalise(b)
            for d in by_split[split]
            for b in pydocs.paragraphs(d.text)
            if len(pydocs.normalise(b)) > 79
        }
        for split in pydocs.SPLITS
    ]
    for sets in (texts, blocks):
        assert not sets[0] & sets[1] and not sets[0] & sets[2] and not sets[1] & sets[2]


def test_doctest_examples_hold():
    assert doctest.testmod(pydocs).failed == 0


def test_the_module_needs_only_the_standard_library():
    source = pydocs.__file__
    with open(source, encoding="utf-8") as stream:
        imported = set(re.findall(r"^(?:import|from) (\w+)", stream.read(), re.MULTILINE))
    assert imported <= set(sys.stdlib_module_names)
