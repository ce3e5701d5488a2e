"""The plan of the house as tests: who imports whom, how long files and functions are, what stays where.

A limit or a direction is never widened to let one change in; a better plan changes this file and docs/decisions.md.
"""

import ast
import dataclasses
import functools
import pathlib
import re
import subprocess
import sys

import pytest

from t2t import families

ROOT = pathlib.Path(__file__).resolve().parents[1]

MAX_FILE = 400
MAX_FUNCTION = 60
MAX_RUN = 120  # the one story of t2t/train/loop.py

# What the modules of each part of t2t may import from the rest of t2t, besides their own part.
MAY_IMPORT = {
    "functional": {"types"},
    "nn": {"functional", "types"},
    "models": {"nn", "functional", "types"},
    "families": {"models", "nn", "heads", "hf.table", "hf.config_map"},
    "objectives": {"functional", "types"},
    "vocabulary": {"file_checks", "errors"},
    "file_checks": set(),
    "staging": set(),
    "data": {"types", "vocabulary", "functional", "errors", "quiet"},
    "train": {
        "objectives", "models", "families", "functional", "nn", "decode", "sharding", "config", "config_values",
        "types", "vocabulary", "errors", "data", "hf.load", "hf.files", "hf.frames", "hf.hub", "hf.original_t5",
        "hf.table", "hf.tensors",
    },
    "planning": {"train", "sharding", "config", "vocabulary", "errors"},
    "decode": {"models", "nn", "functional", "types", "vocabulary"},
    "hf": {
        "models", "nn", "vocabulary", "families", "types", "heads", "config", "config_values", "errors", "staging",
        "file_checks", "data.tensorflow_checkpoint",
    },
    "heads": set(),
    "types": set(),
    "errors": set(),
    "quiet": set(),
    "interrupts": set(),
    "config": {"errors"},
    "config_values": {"errors"},
    "sharding": {"config", "types"},
    "finding": {"config", "config_values", "errors"},
}  # fmt: skip
ANYTHING = {"api", "cli", "commands", "opening", "__init__", "__main__"}
LOW_LEVEL = {"families": {"table", "config_map"}}  # modules of hf that families build on must not import them back

TENSORFLOW = {"tensorflow", "tensorflow_datasets", "tensorflow_text", "seqio", "t5"}
TORCH = {"torch", "transformers"}
PURE = {"jax", "numpy", "jaxtyping"}


def family_names() -> set[str]:
    """Names of the families' files, model types, and how the names of presets begin, with and without dashes."""
    files = (ROOT / "t2t" / "families").glob("*.py")
    names = {path.stem for path in files if "\nFAMILY = " in path.read_text(encoding="utf-8")}
    names |= set(families.all_families())
    for preset in families.presets():
        parts = preset.split("-")
        names |= {"-".join(parts[:count]) for count in range(1, len(parts) + 1)}
    names |= {name.replace("_", "-") for name in names}
    return names | {re.sub(r"(?<=[a-z])(?=\d)", "-", name) for name in names}


FAMILIES = family_names()


@dataclasses.dataclass(frozen=True)
class Import:
    module: str  # dotted name of what is imported, names of `from` imports included
    line: int
    lazy: bool  # inside a function, or for type checkers only


@functools.cache
def parse(path: pathlib.Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def python_files(*folders: str) -> list[pathlib.Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")) if "recipes" not in path.parts]


def name_of(path: pathlib.Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imports(path: pathlib.Path) -> list[Import]:
    found = []

    def visit(node: ast.AST, lazy: bool) -> None:
        if isinstance(node, ast.Import):
            found.extend(Import(alias.name, node.lineno, lazy) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)}:{node.lineno} imports relatively; write t2t.x.y"
            found.extend(Import(f"{node.module}.{alias.name}", node.lineno, lazy) for alias in node.names)
        inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        typing_only = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for child in ast.iter_child_nodes(node):
            visit(child, lazy or inside or typing_only)

    visit(parse(path), False)
    return found


def part_of(path: pathlib.Path) -> str:
    """functional, nn, ... for files in folders of t2t; config, cli, ... for its own files."""
    return path.relative_to(ROOT / "t2t").parts[0].removesuffix(".py")


OURS = python_files("t2t")


@pytest.mark.parametrize("path", OURS, ids=name_of)
def test_imports_follow_the_plan(path):
    part = part_of(path)
    if part in ANYTHING or name_of(path) == "t2t/train/__init__.py":  # which is the function t2t.train too
        return
    assert part in MAY_IMPORT, f"t2t/{part} has no place in the plan: add it to MAY_IMPORT"
    for found in imports(path):
        target = found.module.removeprefix("t2t.")
        if target == found.module or target.split(".")[0] == part or found.module == "t2t.__version__":
            continue
        allowed = any(f"{target}.".startswith(f"{name}.") for name in MAY_IMPORT[part])
        assert allowed, f"{name_of(path)}:{found.line} imports {found.module}; t2t/{part} may not"


@pytest.mark.parametrize("path", OURS, ids=name_of)
def test_heavy_libraries_stay_where_they_belong(path):
    part = part_of(path)
    for found in imports(path):
        top = found.module.partition(".")[0]
        where = f"{name_of(path)}:{found.line} imports {found.module}"
        assert top not in ("tasks", "configs"), f"{where}: t2t never imports recipes"
        assert top not in TENSORFLOW or part == "data", f"{where} outside t2t/data"
        assert top not in TORCH or (part == "hf" and found.lazy), f"{where} outside functions of t2t/hf"
        if part == "functional":
            assert top in PURE | {"t2t"} | sys.stdlib_module_names, f"{where}: functional/ is jax and numpy only"
        if part in ("families", "objectives", "config", "heads", "vocabulary"):
            assert top != "flax", f"{where}: parameters and wiring belong to nn/ and models/"


def test_what_families_build_on_does_not_import_them():
    for name in LOW_LEVEL["families"]:
        path = ROOT / "t2t" / "hf" / f"{name}.py"
        targets = {found.module for found in imports(path)}
        assert not any(target.startswith("t2t.families") for target in targets)


@pytest.mark.parametrize("path", python_files("t2t", "tasks", "configs", "tests", "benchmarks"), ids=name_of)
def test_files_are_short(path):
    length = len(path.read_text(encoding="utf-8").splitlines())
    assert length <= MAX_FILE, f"{name_of(path)} has {length} lines, at most {MAX_FILE} are read in one go"


@pytest.mark.parametrize("path", python_files("t2t", "tasks", "benchmarks"), ids=name_of)
def test_functions_are_short(path):
    is_loop = name_of(path) == "t2t/train/loop.py"
    for node in ast.walk(parse(path)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        length = node.end_lineno - node.lineno + 1
        if ast.get_docstring(node, clean=False) is not None:
            length -= node.body[0].end_lineno - node.body[0].lineno + 1
        limit = MAX_RUN if is_loop else MAX_FUNCTION
        assert length <= limit, f"{name_of(path)}:{node.lineno} {node.name} has {length} lines, at most {limit}"


@pytest.mark.parametrize("path", [path for path in OURS if part_of(path) != "families"], ids=name_of)
def test_no_branch_on_a_family(path):
    for node in ast.walk(parse(path)):
        compared = node if isinstance(node, ast.Compare | ast.MatchValue) else None
        names = {leaf.value for leaf in ast.walk(compared) if isinstance(leaf, ast.Constant)} if compared else set()
        named = {name for name in names if isinstance(name, str) and name.lower() in FAMILIES}
        assert not named, f"{name_of(path)}:{node.lineno} branches on {named}: families are configurations"


def test_names_of_families_are_found():
    assert {"byt5", "deberta-v3", "flan-t5", "gpt-2", "gpt3", "openai-gpt", "t5-v1_1", "tinybert", "ul2"} <= FAMILIES
    assert {"gpt_neox", "gpt-neox", "pythia", "xlm-roberta", "bert-base-uncased"} <= FAMILIES


def tracked_files() -> list[pathlib.Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("this is no git checkout")
    return [ROOT / name for name in listed.stdout.split("\0") if name]


def test_the_text_names_no_path_of_one_machine():
    machine = re.compile(r"(?<![\w.~-])/(?:work|tmp|root|home)/\w")
    for path in tracked_files():
        if path.suffix in (".py", ".md", ".sh", ".toml", ".yml", ".yaml", ".in", "") and path.is_file():
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
                assert not machine.search(line), f"{name_of(path)}:{number} names a path of one machine: {line}"


def loaded_by(code: str) -> set[str]:
    """Top-level modules that a fresh interpreter has loaded after running `code`."""
    report = "import sys; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


def test_importing_t2t_imports_nothing_heavy():
    assert not loaded_by("import t2t, t2t.config, t2t.heads, t2t.cli") & ({"jax", "flax", "numpy"} | TENSORFLOW | TORCH)


@pytest.mark.slow
def test_models_load_generate_and_export_without_tensorflow():
    code = "import t2t; t2t.Model; import t2t.hf.load, t2t.hf.export, t2t.decode.generate, t2t.vocabulary"
    assert not loaded_by(code) & (TENSORFLOW | TORCH)
