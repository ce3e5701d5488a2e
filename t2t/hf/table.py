"""Reversible tables between t2t's parameter paths and the tensor names of Hugging Face checkpoints.

A table is a tuple of entries, each read in both directions:

    Entry("encoder/{i}/attention/out/kernel", "{base}encoder.layer.{i}.attention.output.dense.weight", LINEAR_2)

`{i}` is the depth of a block: it stands for `prefix_0`, ..., `layers_j` (a slice of a stacked leaf) and `suffix_0`, ...
alike, so that no entry knows how a stack is laid out. `{base}` is the prefix a model with a head puts before the names
of its base model (`bert.`); it is absent in a bare model. Which entries hold is decided by the shapes of the model: a
table may name leaves that a configuration lacks (a pooler, an untied head), but every leaf needs an entry.

The design of one table read both ways follows curated-transformers (`curated_transformers/util/hf.py`).
"""

import collections
import dataclasses
import fnmatch
import math
import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

Shape = tuple[int, ...]

HEAD_PATHS = ("head/", "pooler/")
"""Where the parameters stand that one head has and another lacks."""


class MisfitError(ValueError):
    """A model with other parameters than a table describes."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Layout:
    """How a parameter of ours lies in a file.

    Ours has any number of axes, the first `inputs` of which are inputs; a file keeps one axis of inputs and one of
    outputs, in torch's `Linear` transposed to [outputs, inputs]. Without inputs a vector is left.
    """

    inputs: int
    transposed: bool = False
    interleaved: bool = False
    """Whether parameters joined along the outputs alternate head by head, the first axis of their outputs: all of the
    first head, then all of the second."""

    def shape(self, ours: Shape) -> Shape:
        """Shape in the file of a parameter of shape `ours`.

        >>> LINEAR.shape((768, 12, 64))
        (768, 768)
        """
        if self.inputs == 0:
            return (math.prod(ours),)
        sizes = math.prod(ours[: self.inputs]), math.prod(ours[self.inputs :])
        return sizes[::-1] if self.transposed else sizes

    def to_theirs(self, array: np.ndarray) -> np.ndarray:
        """A parameter of ours as it lies in the file; a view where possible."""
        if self.transposed:
            return array.reshape(self.shape(array.shape)[::-1]).T
        return array.reshape(self.shape(array.shape))

    def to_ours(self, array: np.ndarray, shape: Shape) -> np.ndarray:
        """A tensor of the file as the parameter of shape `shape` that it holds."""
        return (array.T if self.transposed else array).reshape(shape)

    @property
    def output_axis(self) -> int:
        """Axis of the file's tensor along which several parameters with common inputs are joined."""
        return 0 if self.inputs == 0 or self.transposed else 1

    def join(self, parts: Sequence[np.ndarray], shapes: Sequence[Shape]) -> np.ndarray:
        """Tensors of the file joined to one; `shapes` are those of our parameters."""
        axis = self.output_axis
        if not self.interleaved:
            return np.concatenate(parts, axis=axis)
        heads = shapes[0][self.inputs]
        joined = np.concatenate([_by_heads(part, axis, heads) for part in parts], axis=axis + 1)
        return _merged(joined, axis)

    def split(self, tensor: np.ndarray, shapes: Sequence[Shape], position: int) -> np.ndarray:
        """What `join` put at a position."""
        axis = self.output_axis
        heads = shapes[0][self.inputs] if self.interleaved else 1
        ends = np.cumsum([self.shape(shape)[axis] // heads for shape in shapes])
        tensor = _by_heads(tensor, axis, heads)
        index = [slice(None)] * tensor.ndim
        index[axis + 1] = slice(ends[position - 1] if position else 0, ends[position])
        return _merged(tensor[tuple(index)], axis)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConvolutionLayout(Layout):
    """Kernels [positions, inputs, outputs] of one-dimensional convolutions, in torch [outputs, inputs, positions]."""

    inputs: int = 2

    def shape(self, ours: Shape) -> Shape:
        """Shape in the file of a parameter of shape `ours`.

        >>> CONVOLUTION.shape((3, 768, 1536))
        (1536, 768, 3)
        """
        return ours[::-1]

    def to_theirs(self, array: np.ndarray) -> np.ndarray:
        """A parameter of ours as it lies in the file."""
        return array.T

    def to_ours(self, array: np.ndarray, shape: Shape) -> np.ndarray:
        """A tensor of the file as our parameter."""
        return array.T.reshape(shape)

    @property
    def output_axis(self) -> int:
        """The first axis."""
        return 0


def _by_heads(array: np.ndarray, axis: int, heads: int) -> np.ndarray:
    return array.reshape(*array.shape[:axis], heads, -1, *array.shape[axis + 1 :])


def _merged(array: np.ndarray, axis: int) -> np.ndarray:
    return array.reshape(*array.shape[:axis], -1, *array.shape[axis + 2 :])


@dataclasses.dataclass(frozen=True, kw_only=True)
class AxesLayout(Layout):
    """Parameters of which a file keeps every axis, in another order where one is given."""

    inputs: int = 0
    order: tuple[int, ...] | None = None  # our axes, as they follow each other in the file

    def shape(self, ours: Shape) -> Shape:
        """Shape in the file of a parameter of shape `ours`.

        >>> OUTPUTS_FIRST.shape((12, 64, 768))
        (768, 12, 64)
        """
        return ours if self.order is None else tuple(ours[axis] for axis in self.order)

    def to_theirs(self, array: np.ndarray) -> np.ndarray:
        """A parameter of ours as it lies in the file."""
        return array if self.order is None else array.transpose(self.order)

    def to_ours(self, array: np.ndarray, shape: Shape) -> np.ndarray:
        """A tensor of the file as our parameter."""
        return (array if self.order is None else array.transpose(np.argsort(self.order))).reshape(shape)


VECTOR = Layout(inputs=0)
"""Biases and scales, whatever their axes here."""
MATRIX = Layout(inputs=1)
"""[inputs, outputs] as here: embeddings, and the kernels of GPT's `Conv1D`."""
MATRIX_2 = Layout(inputs=2)
"""As MATRIX, of a kernel whose inputs are heads and head_dim."""
LINEAR = Layout(inputs=1, transposed=True)
"""Kernels of torch's `Linear`: [outputs, inputs]."""
LINEAR_2 = Layout(inputs=2, transposed=True)
"""As LINEAR, of a kernel whose inputs are heads and head_dim."""
LINEAR_BY_HEADS = Layout(inputs=1, transposed=True, interleaved=True)
"""As LINEAR, of kernels whose outputs are heads and head_dim, joined head by head."""
VECTOR_BY_HEADS = Layout(inputs=0, interleaved=True)
"""As VECTOR, of biases of heads and head_dim, joined head by head."""
CONVOLUTION = ConvolutionLayout()
"""Kernels of torch's `Conv1d`."""

AXES = AxesLayout()
"""Every axis as here."""
OUTPUTS_FIRST = AxesLayout(order=(2, 0, 1))
"""Kernels [heads, head_dim, outputs] whose outputs a file has first."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """One tensor of a checkpoint and the parameter, or the parameters joined along the outputs, that it holds.

    `copies` are further names under which checkpoints hold the same tensor (tied weights): accepted on import when
    equal (or `copies_may_differ`: then `theirs` counts), and not written, except to models that have the parameter
    `copies_with`. `needs` and `unless` are parameters that a block (or the model) must have, or lack, for the entry to
    hold; `task` is the one its head of labels must have, where a family names equal parameters by it.
    """

    ours: str | tuple[str, ...]
    theirs: str
    layout: Layout
    copies: tuple[str, ...] = ()
    copies_with: str | None = None
    copies_may_differ: bool = False
    needs: str | None = None
    unless: str | None = None
    task: str | None = None

    @property
    def parts(self) -> tuple[str, ...]:
        """Patterns of the parameters that lie in the tensor, in order."""
        return (self.ours,) if isinstance(self.ours, str) else self.ours


def norm_entries(ours: str, theirs: str) -> tuple[Entry, Entry]:
    """The tensors of one layer norm.

    >>> [entry.theirs for entry in norm_entries("embed/norm", "{base}LayerNorm")]
    ['{base}LayerNorm.weight', '{base}LayerNorm.bias']
    """
    return Entry(f"{ours}/scale", f"{theirs}.weight", VECTOR), Entry(f"{ours}/bias", f"{theirs}.bias", VECTOR)


def linear_entries(ours: str, theirs: str, *, inputs: int = 1, **conditions: str | None) -> tuple[Entry, Entry]:
    """The tensors of a torch `Linear` with a bias, whose kernel here has so many axes of inputs.

    The conditions are `needs`, `unless` and `task` of both entries.

    >>> [entry.theirs for entry in linear_entries("pooler", "{base}pooler.dense")]
    ['{base}pooler.dense.weight', '{base}pooler.dense.bias']
    """
    kernel = Entry(f"{ours}/kernel", f"{theirs}.weight", LINEAR if inputs == 1 else LINEAR_2, **conditions)
    return kernel, Entry(f"{ours}/bias", f"{theirs}.bias", VECTOR, **conditions)


@dataclasses.dataclass(frozen=True)
class Ignored:
    """A tensor that checkpoints may hold and that no model needs, and why: the listed decision to leave it out."""

    theirs: str  # fnmatch pattern
    reason: str
    where_zero: bool = False  # only a tensor that holds nothing else
    if_unused: bool = False  # whether some models do have a place for it


@dataclasses.dataclass(frozen=True)
class Slot:
    """One block's share of a parameter: all of it, or one index of the leading axis of a stacked one."""

    path: str
    index: int | None
    shape: Shape  # of the share


@dataclasses.dataclass(frozen=True)
class Binding:
    """An entry applied to one model: this tensor holds these slots."""

    key: str
    slots: tuple[Slot, ...]
    layout: Layout
    copies: tuple[str, ...]
    copies_may_differ: bool
    written: tuple[str, ...]  # the names under which the tensor is exported

    @property
    def shape(self) -> Shape:
        """Shape of the tensor in a checkpoint."""
        shapes = [list(self.layout.shape(slot.shape)) for slot in self.slots]
        axis = self.layout.output_axis
        return tuple(sum(s[axis] for s in shapes) if a == axis else n for a, n in enumerate(shapes[0]))

    def join(self, arrays: Sequence[np.ndarray]) -> np.ndarray:
        """The tensor made of one array per slot."""
        parts = [self.layout.to_theirs(array) for array in arrays]
        return parts[0] if len(parts) == 1 else self.layout.join(parts, [slot.shape for slot in self.slots])

    def part(self, tensor: np.ndarray, position: int) -> np.ndarray:
        """What slot number `position` holds of the tensor."""
        part = self.layout.split(tensor, [slot.shape for slot in self.slots], position)
        return self.layout.to_ours(part, self.slots[position].shape)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Table:
    """All entries of a family, what it ignores, and the prefix of its base model."""

    entries: tuple[Entry, ...]
    ignored: tuple[Ignored, ...] = ()
    base: str = ""  # with its dot, e.g. "bert."
    old_names: tuple[tuple[str, str], ...] = ((".gamma", ".weight"), (".beta", ".bias"))
    """Endings of names of old checkpoints, and what they are now: those of norms, which transformers renames in all."""

    def bind(self, shapes: Mapping[str, Shape], *, base: bool, task: str | None = None) -> tuple[Binding, ...]:
        """The tensors of a model with these parameters, with or without the base prefix.

        Args:
            shapes: path -> shape of every parameter.
            base: whether names carry the prefix of the base model.
            task: of the model's head of labels, where it has one.

        Raises:
            MisfitError: parameters that no entry, or more than one, is about.
        """
        prefix = self.base if base else ""
        entries = [entry for entry in self.entries if entry.task in (None, task)]
        bindings = [binding for entry in entries for binding in _bind(entry, shapes, prefix)]
        keys = {binding.key for binding in bindings}
        bindings = [dataclasses.replace(b, copies=tuple(c for c in b.copies if c not in keys)) for b in bindings]
        held = collections.Counter((slot.path, slot.index) for binding in bindings for slot in binding.slots)
        lacking = sorted(set(shapes) - {path for path, _ in held})
        twice = sorted({path for (path, _), times in held.items() if times > 1})
        if lacking or twice:
            raise MisfitError(
                f"its name table does not fit the model: parameters without an entry {lacking}, with several {twice}"
            )
        return tuple(bindings)

    def canonical(self, key: str) -> str:
        """The present name of a tensor, with the base prefix kept or left out as in `key`."""
        for old, new in self.old_names:
            if key.endswith(old):
                return key.removesuffix(old) + new
        return key

    def ignores(self, key: str, *, is_zero: bool = False, unused: bool = False) -> bool:
        """Whether leaving out the tensor `key` is a listed decision.

        Args:
            key: its name.
            is_zero: whether it is known to hold nothing but zeros.
            unused: whether it is known that the model has no place for it.
        """
        return any(
            fnmatch.fnmatchcase(key, ignored.theirs)
            for ignored in self.ignored
            if (is_zero or not ignored.where_zero) and (unused or not ignored.if_unused)
        )

    def is_of(self, key: str, paths: tuple[str, ...]) -> bool:
        """Whether the tensor `key` holds parameters under one of these paths in some model of the family."""
        names = [
            name
            for entry in self.entries
            if all(part.startswith(paths) for part in entry.parts)
            for name in (entry.theirs, *entry.copies)
        ]
        return any(_pattern(name.replace("{base}", base)).fullmatch(key) for name in names for base in ("", self.base))


def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(re.escape(name).replace(re.escape("{i}"), r"\d+"))


def _bind(entry: Entry, shapes: Mapping[str, Shape], prefix: str) -> Iterator[Binding]:
    """The tensors an entry describes in a model: none, one, or one for each block."""
    depths = [list(_slots(part, shapes)) for part in entry.parts]
    if not any(depths):
        return
    if len({tuple(depth for depth, _ in found) for found in depths}) > 1:
        raise MisfitError(f"{entry.theirs} joins {entry.parts}, of which the model has only some")
    needed = None if entry.needs is None else {depth for depth, _ in _slots(entry.needs, shapes)}
    excluded = set() if entry.unless is None else {depth for depth, _ in _slots(entry.unless, shapes)}
    for place in zip(*depths, strict=True):
        depth = place[0][0]
        if depth in excluded or (needed is not None and depth not in needed):
            continue
        name = entry.theirs.replace("{base}", prefix)
        copies = tuple(copy.replace("{base}", prefix).replace("{i}", str(depth)) for copy in entry.copies)
        key = name.replace("{i}", str(depth))
        written = (key, *copies) if entry.copies_with in shapes else (key,)
        slots = tuple(slot for _, slot in place)
        yield Binding(key, slots, entry.layout, copies, entry.copies_may_differ, written)


def _slots(pattern: str, shapes: Mapping[str, Shape]) -> Iterator[tuple[int, Slot]]:
    """Depth and slot of every share of the parameters that a pattern of ours means."""
    if "{i}" not in pattern:
        if pattern in shapes:
            yield 0, Slot(pattern, None, shapes[pattern])
        return
    stack, rest = pattern.split("{i}/")
    for depth, (block, index) in enumerate(blocks(shapes, stack)):
        path = f"{stack}{block}/{rest}"
        if path in shapes:
            yield depth, Slot(path, index, shapes[path] if index is None else shapes[path][1:])


def blocks(shapes: Mapping[str, Shape], stack: str) -> list[tuple[str, int | None]]:
    """Name and index of every block of a stack, in order of depth.

    >>> blocks({"encoder/layers_0/a": (2, 5), "encoder/layers_1/a": (2, 5), "encoder/suffix_0/a": (5,)}, "encoder/")
    [('layers_0', 0), ('layers_1', 0), ('layers_0', 1), ('layers_1', 1), ('suffix_0', None)]
    """
    sizes = {
        path.removeprefix(stack).split("/")[0]: shape[0] for path, shape in shapes.items() if path.startswith(stack)
    }

    def named(kind: str) -> list[str]:
        return [f"{kind}_{k}" for k in range(len(sizes)) if f"{kind}_{k}" in sizes]

    pattern = named("layers")
    repeats = sizes[pattern[0]] if pattern else 0
    scanned: list[tuple[str, int | None]] = [(name, k) for k in range(repeats) for name in pattern]
    return [(name, None) for name in named("prefix")] + scanned + [(name, None) for name in named("suffix")]
