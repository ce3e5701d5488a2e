"""Compiled programs as text, read into instructions, with how often each of them runs.

XLA's own `cost_analysis` takes the body of a loop once; here a loop counts as often as it runs. Only what the sums over
a program need is read: shapes, operands, the computations an instruction calls, and its attributes as text.
"""

import dataclasses
import functools
import math
import re
from collections.abc import Iterator, Mapping

BYTES = {"pred": 1, "token": 0, "s4": 0.5, "u4": 0.5, "bf16": 2, "c64": 8, "c128": 16}
"""Bytes of an element where the name of its type does not end in its bits."""

ARRAY = re.compile(r"([a-z]\w*)\[([\d,]*)\](?:\{([^}]*)\})?")
NAME = re.compile(r"%([\w.\-]+)")
CALLED = re.compile(r"(?:calls|to_apply|body|condition|branch_computations|true_computation|false_computation)=")
HEADER = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\) -> .* \{$")


@dataclasses.dataclass(frozen=True)
class Array:
    """One array of an instruction's result."""

    dtype: str
    dims: tuple[int, ...]
    is_in_hbm: bool
    """False where its layout puts it into the chip's inner memory."""

    @property
    def size(self) -> int:
        """Elements."""
        return math.prod(self.dims)

    @property
    def bytes(self) -> float:
        """Without padding."""
        return self.size * width(self.dtype)


def width(dtype: str) -> float:
    """Bytes of an element.

    >>> width("bf16"), width("f32"), width("f8e4m3fn"), width("pred")
    (2, 4.0, 1.0, 1)
    """
    if dtype in BYTES:
        return BYTES[dtype]
    bits = re.match(r"[a-z]+(\d+)", dtype)
    return int(bits[1]) / 8 if bits else 0


@dataclasses.dataclass(frozen=True)
class Instruction:
    """One line of a computation."""

    name: str
    opcode: str
    arrays: tuple[Array, ...]
    operands: tuple[str, ...]
    attributes: str
    is_root: bool
    literal: str = ""
    """What stands between its brackets, as text: the value of a constant, the number of a parameter."""

    def called(self, key: str) -> tuple[str, ...]:
        """The computations it names as `key`, such as body or calls."""
        found = re.search(rf"\b{key}=(%[\w.\-]+|\{{[^}}]*\}})", self.attributes)
        return tuple(NAME.findall(found[1])) if found else ()

    def integers(self, key: str) -> tuple[int, ...]:
        """The numbers of an attribute such as dimensions={0,1}."""
        found = re.search(rf"\b{key}=\{{([\d,]*)\}}", self.attributes)
        return tuple(int(number) for number in found[1].split(",") if number) if found else ()


@dataclasses.dataclass(frozen=True)
class Computation:
    """A named sequence of instructions."""

    name: str
    instructions: Mapping[str, Instruction]

    @property
    def root(self) -> Instruction:
        """The instruction whose result is the computation's."""
        return next(one for one in self.instructions.values() if one.is_root)

    @functools.cached_property
    def users(self) -> dict[str, list[Instruction]]:
        """Who reads each instruction."""
        found: dict[str, list[Instruction]] = {}
        for one in self.instructions.values():
            for operand in dict.fromkeys(one.operands):
                found.setdefault(operand, []).append(one)
        return found


@dataclasses.dataclass(frozen=True)
class Use:
    """A computation at one place of the program."""

    computation: Computation
    times: int
    """How often it runs in a step."""
    is_fused: bool
    """Whether it is the inside of one kernel, whose values never reach the memory."""


@dataclasses.dataclass(frozen=True)
class Program:
    """A compiled program."""

    computations: Mapping[str, Computation]
    entry: str

    def uses(self) -> Iterator[Use]:
        """Every computation with how often it runs, once for each place that runs it."""
        yield from self._uses(self.entry, 1, False)

    def _uses(self, name: str, times: int, is_fused: bool) -> Iterator[Use]:
        computation = self.computations[name]
        yield Use(computation, times, is_fused)
        for one in computation.instructions.values():
            if one.opcode == "while":
                for body in one.called("body"):
                    yield from self._uses(body, times * self.trips(computation, one), is_fused)
            elif one.opcode == "fusion":
                for inner in one.called("calls"):
                    yield from self._uses(inner, times, True)
            elif one.opcode in ("call", "async-start"):
                for inner in (*one.called("to_apply"), *one.called("calls")):
                    yield from self._uses(inner, times, is_fused)
            elif one.opcode == "conditional":
                names = ("branch_computations", "true_computation", "false_computation")
                for inner in (branch for key in names for branch in one.called(key)):
                    yield from self._uses(inner, times, is_fused)

    def trips(self, computation: Computation, loop: Instruction) -> int:
        """How often the body of a loop runs; 1 where the program does not say."""
        stated = re.search(r'known_trip_count":\{"n":"(\d+)"', loop.attributes)
        if stated:
            return int(stated[1])
        (name,) = loop.called("condition")
        condition = self.computations[name]
        root, initial = condition.root, computation.instructions.get(loop.operands[0])
        if root.opcode != "compare" or "direction=LT" not in root.attributes:
            return 1
        counter, limit = root.operands
        last = self._constant(condition, limit, computation, initial)
        first = self._constant(condition, counter, computation, initial)
        return 1 if last is None else max(1, last - (first or 0))

    def _constant(
        self, inner: Computation, name: str, outer: Computation | None, initial: Instruction | None
    ) -> int | None:
        """The value of an integer in a condition, where it is written down, if need be in what the loop begins with."""
        one = inner.instructions.get(name)
        if one is None:
            return None
        if one.opcode == "constant":
            return int(one.literal) if re.fullmatch(r"-?\d+", one.literal) else None
        if one.opcode in ("copy", "bitcast", "convert", "reshape"):
            return self._constant(inner, one.operands[0], outer, initial)
        if one.opcode == "get-tuple-element" and initial is not None and outer is not None:
            index = re.search(r"\bindex=(\d+)", one.attributes)
            if index and initial.opcode == "tuple":
                return self._constant(outer, initial.operands[int(index[1])], None, None)
        return None


def parse(text: str) -> Program:
    """The program of a text such as `jax.stages.Compiled.as_text()`.

    Raises:
        ValueError: the text has no entry computation.
    """
    computations: dict[str, Computation] = {}
    entry, name, instructions = "", "", {}
    for line in text.splitlines():
        header = HEADER.match(line)
        if header:
            name, instructions = header[2], {}
            entry = name if header[1] else entry
        elif line.startswith("}"):
            computations[name] = Computation(name, instructions)
        elif name and line.startswith("  ") and " = " in line:
            one = _instruction(line.strip())
            instructions[one.name] = one
    if entry not in computations:
        raise ValueError("this is no compiled program: it has no ENTRY computation")
    return Program(computations, entry)


def _instruction(line: str) -> Instruction:
    is_root = line.startswith("ROOT ")
    name, _, rest = line.removeprefix("ROOT ").partition(" = ")
    end = _closing(rest, 0) + 1 if rest.startswith("(") else rest.index(" ")
    shape, rest = rest[:end], rest[end:].lstrip()
    start = rest.index("(")
    stop = _closing(rest, start)
    inside = rest[start + 1 : stop]
    return Instruction(
        name=name.lstrip("%"),
        opcode=rest[:start],
        arrays=tuple(_array(*found.groups()) for found in ARRAY.finditer(shape)),
        operands=tuple(NAME.findall(inside)),
        attributes=rest[stop + 1 :],
        is_root=is_root,
        literal=inside,
    )


def _array(dtype: str, dims: str, layout: str | None) -> Array:
    space = re.search(r"S\((\d+)\)", layout or "")
    return Array(dtype, tuple(int(size) for size in dims.split(",") if size), space is None or space[1] == "0")


def _closing(text: str, start: int) -> int:
    """Where the bracket that opens at `start` closes."""
    depth = 0
    for found in re.finditer(r"[()]", text[start:]):
        depth += 1 if found[0] == "(" else -1
        if depth == 0:
            return start + found.start()
    raise ValueError(f"a bracket does not close: {text[:80]}")
