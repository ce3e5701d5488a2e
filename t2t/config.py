"""What a run is: `Experiment` and its parts as frozen dataclasses, to JSON and back, and their differences in words.

A file in `configs/` returns an `Experiment`; the command line turns every field below into a typed flag, with the line
under the field as its help. Choosing is choosing a class (`optimizer=Adafactor(...)`), so the fields `model`,
`objective` and `optimizer` take any frozen dataclass of the kind their comment names; this module imports none of them
and stays light.
"""

import dataclasses
import difflib
import importlib
import math
import types
import typing
from collections.abc import Iterator
from typing import Any, Literal

RESUMABLE = ("train.steps", "data.eval_files", "evaluate", "checkpoint", "mesh")
"""The settings that may change between a run and its continuation."""


def _require_positive(owner: str, **values: float | None) -> None:
    for field, value in values.items():
        if isinstance(value, int | float) and value <= 0:  # other types are `check_types`' to refuse
            raise ValueError(f"{owner}.{field} is {value}; it must be positive")


MAX_OPEN_ROWS = 4096
"""Rows that packing may keep open for each row of the batch."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Data:
    """Which tasks the run learns from, and the shape of its batches."""

    modules: tuple[str, ...] = ()
    """Python modules that register the tasks when imported, such as tasks.pydocs."""
    train: str | dict[str, float]
    """Name of the task to learn, or the rate of each task of a mixture."""
    lengths: dict[str, int]
    """Tokens per row of each feature, such as inputs 512 and targets 114."""
    batch_size: int
    """Rows of the global batch, over all devices and micro-batches."""
    packing: bool = True
    """Whether several short examples share a row."""
    open_rows: int = 1
    """Rows that packing keeps open for each row of the batch; an example goes to the first with room for it. 1 packs in
    order; some 30 fill rows better where examples differ in length."""
    files: tuple[str, ...] = ()
    """Your own text instead of the task's source: paths, globs or folders (txt, md, jsonl, csv, tsv, parquet, arrow,
    tfrecord, array_record; also .gz and .zst)."""
    eval_files: tuple[str, ...] = ()
    """Your own held-out text, like `files`."""
    field: str = "text"
    """Column that holds the text in files of records (all but txt and md)."""
    unit: Literal["file", "line", "paragraph"] = "paragraph"
    """What counts as one document in plain text files."""
    on_error: Literal["stop", "skip"] = "stop"
    """Whether a document that cannot be read (not UTF-8, no JSON) ends the reading, or is left out and counted."""

    def __post_init__(self):
        """Refuse shapes no batch can have."""
        _require_positive("data", batch_size=self.batch_size, open_rows=self.open_rows)
        if isinstance(self.open_rows, int) and (self.open_rows > 1 and not self.packing):
            raise ValueError(f"data.open_rows is {self.open_rows}; without data.packing it must be 1")
        if isinstance(self.open_rows, int) and self.open_rows > MAX_OPEN_ROWS:
            raise ValueError(
                f"data.open_rows is {self.open_rows}; it must be at most {MAX_OPEN_ROWS}, for the examples of so many "
                "rows are read before the first batch: some 30 fill rows well"
            )
        _require_positive("data.lengths", **self.lengths)
        if isinstance(self.train, dict):
            if not self.train:
                raise ValueError("data.train is an empty mixture; name at least one task")
            _require_positive("data.train", **self.train)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Train:
    """How long and in which arithmetic the run trains."""

    steps: int
    """Updates of the parameters, counted from the beginning of the run."""
    micro_batches: int = 1
    """Pieces a batch is cut into, to save memory; the update is the same apart from dropout masks and rounding."""
    log_every: int = 50
    """Steps between two lines of metrics."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Type of activations; auto is bfloat16 on accelerators and float32 on CPUs. Parameters are always float32."""
    remat: Literal["none", "full", "dots", "dots_no_batch"] | None = None
    """Which activations are computed again in the backward pass; None leaves it to the model's stack."""

    def __post_init__(self):
        """Refuse runs without steps."""
        _require_positive("train", steps=self.steps, micro_batches=self.micro_batches, log_every=self.log_every)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Evaluate:
    """On which tasks, how often and how the run is evaluated."""

    tasks: tuple[str, ...] = ()
    """Tasks whose validation split is read, those of mixtures one by one; with metric functions also predicted."""
    every: int = 1000
    """Steps between two evaluations; one more follows the last step."""
    batch_size: int | None = None
    """Rows of an evaluation batch; None is the training batch."""
    max_examples: int | None = None
    """Examples of each task that are read, from the first; None is all."""
    beams: int = 1
    """Beams of generated predictions; 1 is greedy."""

    def __post_init__(self):
        """Refuse periods and sizes below one."""
        _require_positive(
            "evaluate", every=self.every, batch_size=self.batch_size, max_examples=self.max_examples, beams=self.beams
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """When the state of the run is written, and what is kept."""

    every: int = 1000
    """Steps between two checkpoints; one more follows the last step."""
    keep: int = 3
    """Checkpoints kept, the newest ones."""
    best: str | None = None
    """TASK/METRIC whose best checkpoint is kept besides, such as pydocs_topic/accuracy; None keeps none."""
    best_is: Literal["highest", "lowest"] = "highest"
    """Which value of `best` is the best."""

    def __post_init__(self):
        """Refuse periods and counts below one."""
        _require_positive("checkpoint", every=self.every, keep=self.keep)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Mesh:
    """Number of devices along each axis of the mesh; one of them may be -1, all that remain."""

    data: int = -1
    """Copies of the parameters, each with its part of the batch."""
    fsdp: int = 1
    """Parts of the batch among which parameters and optimizer state are divided too."""
    tensor: int = 1
    """Parts of heads, feed-forward width and vocabulary."""
    sequence: int = 1
    """Parts of the length of activations."""

    def __post_init__(self):
        """Refuse sizes that are no number of devices."""
        sizes = dataclasses.asdict(self)
        for axis, size in sizes.items():
            if size < 1 and size != -1:
                raise ValueError(f"mesh.{axis} is {size}; it must be a positive number of devices, or -1 for the rest")
        if list(sizes.values()).count(-1) > 1:
            raise ValueError(f"only one axis of the mesh may be -1 (the rest of the devices); got {sizes}")


MAX_NAME, MAX_SEED = 200, 2**31 - 1
"""Bytes of a run's name, and the largest seed."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Experiment:
    """Everything that determines a run."""

    name: str
    """Name of the run; its directory is runs/NAME unless --workdir says otherwise."""
    seed: int = 0
    """Of initial parameters, dropout and the order and corruption of the data."""
    # An EncoderConfig, DecoderConfig or EncoderDecoderConfig.
    model: Any
    init: str | None = None
    """Run, checkpoint, model or Hugging Face directory whose parameters the run starts from."""
    vocabulary: str | None = None
    """Directory or file of the vocabulary; None takes the one of `init`, else makes one (`vocabulary_size`)."""
    vocabulary_size: int | None = None
    """Ids of a SentencePiece vocabulary trained on the run's own text where none is given; None takes bytes."""
    vocabulary_sentinels: int = 100
    """Sentinels of that vocabulary, which has mode tokens too where a task asks for them; 300 suit UL2."""
    data: Data
    # An objective of t2t.objectives.
    objective: Any
    # Adafactor or AdamW of t2t.train.optimizer.
    optimizer: Any
    train: Train
    evaluate: Evaluate = Evaluate()
    checkpoint: Checkpoint = Checkpoint()
    mesh: Mesh = Mesh()

    def __post_init__(self):
        """Refuse names that are no name of a directory."""
        if not self.name or self.name.startswith(".") or any(sign in self.name for sign in "/\\ "):
            raise ValueError(f"name is {self.name!r}; it names a directory, so no slashes, spaces or leading dots")
        if len(self.name.encode("utf-8", errors="replace")) > MAX_NAME or not self.name.isprintable():
            raise ValueError(f"name is {self.name!r}; a directory's has at most {MAX_NAME} bytes, all printable")
        if isinstance(self.seed, int) and not 0 <= self.seed <= MAX_SEED:
            raise ValueError(f"seed is {self.seed}; it must lie between 0 and {MAX_SEED}")
        _require_positive("experiment", vocabulary_size=self.vocabulary_size)


def check_types(value: Any) -> None:
    """Refuses settings of another type than their field has: a list for a tuple, a NumPy scalar, 4.0 for an int, NaN.

    Python does not look, and the run would end somewhere deep, or go on with a batch of True rows.

    Raises:
        TypeError: naming every such setting, its value and what is allowed.
    """
    wrong = list(_wrong_types(value, type(value), ""))
    if wrong:
        raise TypeError("; ".join(wrong))


def _wrong_types(value: Any, hint: Any, path: str) -> Iterator[str]:
    inner = typing.get_args(hint)
    if not _is_a(value, hint):
        names = " or ".join(getattr(kind, "__name__", str(kind)) for kind in (inner if _is_union(hint) else (hint,)))
        names = str(hint) if typing.get_origin(hint) in (tuple, dict) else names.replace("NoneType", "None")
        yield f"{path} is {value!r} ({type(value).__name__}); it must be {names}"
    elif isinstance(value, float) and math.isnan(value):
        yield f"{path} is nan; it must be a number"
    elif dataclasses.is_dataclass(value):
        hints = typing.get_type_hints(type(value))
        for field in dataclasses.fields(value):
            yield from _wrong_types(getattr(value, field.name), hints[field.name], f"{path}.{field.name}".lstrip("."))
    elif typing.get_origin(hint) is tuple and inner[1:] == (...,):
        for index, item in enumerate(value):
            yield from _wrong_types(item, inner[0], f"{path}[{index}]")
    elif isinstance(value, dict):
        entry = next((typing.get_args(kind) for kind in (hint, *inner) if typing.get_origin(kind) is dict), ())
        for key, item in value.items() if entry else ():
            yield from _wrong_types(item, entry[1], f"{path}.{key}")


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


def _is_a(value: Any, hint: Any) -> bool:
    """Whether a value is of a type, looking into neither. Types of kinds that no config of t2t has are not judged."""
    if _is_union(hint):
        return any(_is_a(value, kind) for kind in typing.get_args(hint))
    if typing.get_origin(hint) is Literal:
        return value in typing.get_args(hint)
    kind = typing.get_origin(hint) or hint
    if kind in (bool, int, str, types.NoneType):
        return type(value) is kind  # True is an int to Python, and np.float64 a float
    if kind is float:
        return type(value) in (int, float)
    return not (kind in (tuple, dict) or dataclasses.is_dataclass(kind)) or isinstance(value, kind)


def to_json(value: Any) -> Any:
    """Plain JSON values for a config: each dataclass becomes {"class": "t2t.config.Train", its fields...}.

    Sequences are tuples (frozen like everything else) and become lists; keys of dictionaries are strings.

    Raises:
        TypeError: For values that `from_json` could not give back, naming where they stand.
    """
    return _to_json(value, "config")


def _to_json(value: Any, path: str) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: _to_json(getattr(value, f.name), f"{path}.{f.name}") for f in dataclasses.fields(value)}
        return {"class": f"{type(value).__module__}.{type(value).__qualname__}", **fields}
    if isinstance(value, tuple):
        return [_to_json(item, f"{path}.{i}") for i, item in enumerate(value)]
    if isinstance(value, dict) and "class" not in value and all(isinstance(key, str) for key in value):
        return {key: _to_json(item, f"{path}.{key}") for key, item in value.items()}
    if value is None or type(value) in (bool, int, float, str):
        return value
    hint = "write a tuple" if isinstance(value, list) else "configs hold dataclasses, tuples, dictionaries and scalars"
    raise TypeError(f"{path} is {value!r} ({type(value).__name__}), which has no form in JSON: {hint}")


def from_json(value: Any, *, modules: tuple[str, ...] | None = None) -> Any:
    """The config that `to_json` wrote.

    Args:
        value: What `to_json` returned, also after a trip through a file.
        modules: Modules besides those of t2t whose dataclasses may be built; None takes the `data.modules` that an
            experiment names itself.

    Raises:
        ValueError: For classes of other modules, and for fields that the class does not have.
    """
    if modules is None:
        data = value.get("data") if isinstance(value, dict) else None
        modules = tuple(data.get("modules", ())) if isinstance(data, dict) else ()
    if isinstance(value, list):
        return tuple(from_json(item, modules=modules) for item in value)
    if not isinstance(value, dict):
        return value
    fields = {key: from_json(item, modules=modules) for key, item in value.items() if key != "class"}
    return _find_class(value["class"], modules)(**fields) if "class" in value else fields


def _find_class(path: str, modules: tuple[str, ...]) -> Any:
    module_name, _, name = path.rpartition(".")
    if module_name.partition(".")[0] != "t2t" and module_name not in modules:
        raise ValueError(f"the config names the class {path}, but only classes of t2t and of data.modules are loaded")
    try:
        found = getattr(importlib.import_module(module_name), name, None)
    except ModuleNotFoundError as error:
        raise ValueError(f"the config names the class {path}, but there is no module {error.name}") from error
    if not (isinstance(found, type) and dataclasses.is_dataclass(found)):
        raise ValueError(f"the config names the class {path}, but {module_name} has no such dataclass")
    return lambda **fields: _build(found, fields)


def _build(cls: type, fields: dict[str, Any]) -> Any:
    known = [field.name for field in dataclasses.fields(cls)]
    for name in fields:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"it has {', '.join(known)}"
            raise ValueError(f"{cls.__name__} has no field {name}; {hint}")
    missing = [
        field.name
        for field in dataclasses.fields(cls)
        if field.name not in fields and field.default is field.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise ValueError(f"{cls.__name__} needs {', '.join(missing)}")
    return cls(**fields)


def flatten(value: Any, prefix: str = "") -> dict[str, Any]:
    """The leaves of a config by dotted path, classes included: {"train.steps": 100, "mesh": "Mesh", ...}."""
    tree = to_json(value)
    leaves: dict[str, Any] = {}

    def visit(node: Any, path: str) -> None:
        children = dict(enumerate(node)) if isinstance(node, list) else node
        if not isinstance(children, dict) or not children:
            leaves[path] = node
            return
        if "class" in children:
            leaves[path] = children["class"].rpartition(".")[2]
        for name, child in children.items():
            if name != "class":
                visit(child, f"{path}.{name}" if path else str(name))

    visit(tree, prefix)
    return leaves


def difference(old: Any, new: Any, *, ignore: tuple[str, ...] = ()) -> tuple[str, ...]:
    """One readable line per setting that differs: ("train.steps: 100 -> 200",). Empty where nothing does.

    Args:
        old: The config on the left of the arrows.
        new: The config on the right.
        ignore: Dotted paths that may differ, with everything below them.
    """
    before, after = flatten(old), flatten(new)
    absent = object()
    lines = []
    for path in [*before, *(path for path in after if path not in before)]:
        left, right = before.get(path, absent), after.get(path, absent)
        if left == right or any(path == name or path.startswith(f"{name}.") for name in ignore):
            continue
        show = ["(absent)" if side is absent else str(side) for side in (left, right)]
        lines.append(f"{path or 'config'}: {show[0]} -> {show[1]}")
    return tuple(lines)
