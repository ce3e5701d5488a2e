"""What a compiled program does in a step on one chip: operations, bytes of its memory, cycles by XLA's own estimate."""

import dataclasses
import math
import re
from collections.abc import Iterator, Sequence

from t2t.planning import hlo
from t2t.planning.hlo import Computation, Instruction, Program

NO_TRAFFIC = frozenset({
    "parameter", "tuple", "get-tuple-element", "bitcast", "constant", "while", "conditional", "call", "after-all",
    "partition-id", "replica-id", "async-start", "async-done", "async-update", "copy-done", "all-gather-done",
    "all-reduce-done", "collective-permute-done", "send-done", "recv-done", "opt-barrier", "optimization-barrier",
    "slice-done", "dynamic-slice-done", "dynamic-update-slice-done",
})  # fmt: skip
"""Instructions that move nothing themselves."""
SLICES = ("dynamic-slice", "slice", "gather")
CYCLES = re.compile(r'"estimated_cycles":"(\d+)"')
PASSED_ON = ("bitcast", "copy", "convert", "reshape")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Work:
    """Of one chip and one step; loops count as often as they run."""

    matrix_operations: float
    """Of matrix products and convolutions, padding left out."""
    looped_operations: float
    """The part of them that is there because loops run more than once: what XLA's own count lacks."""
    bytes: float
    """Read from and written to the chip's memory."""
    cycles: float
    """By XLA's estimate for each kernel; 0 where it made none."""
    kernels: int
    """Custom kernels, whose operations are not counted."""


def measure(program: Program) -> Work:
    """The work of a step."""
    operations = looped = moved = cycles = 0.0
    kernels = 0
    for use in program.uses():
        for one in use.computation.instructions.values():
            count = matrix_operations(use.computation, one)
            operations += use.times * count
            looped += (use.times - 1) * count
            if "tpu_custom_call" in one.attributes:
                kernels += 1
            if use.is_fused:
                continue
            moved += use.times * traffic(program, use.computation, one)
            found = CYCLES.search(one.attributes)
            cycles += use.times * (int(found[1]) if found else 0)
    return Work(matrix_operations=operations, looped_operations=looped, bytes=moved, cycles=cycles, kernels=kernels)


def matrix_operations(computation: Computation, one: Instruction) -> int:
    """Operations of a product or convolution, a multiply and an add as two; 0 for everything else.

    A convolution counts the pairs of input and kernel that meet, not what padding adds: the compiler for TPU writes
    batched products as convolutions with much padding. XLA's `HloCostAnalysis` does the same.
    """
    if one.opcode == "dot":
        left = computation.instructions[one.operands[0]].arrays[0]
        depth = math.prod(left.dims[axis] for axis in one.integers("lhs_contracting_dims"))
        return 2 * one.arrays[0].size * depth
    if one.opcode == "convolution":
        return _convolution(computation, one)
    return 0


def _convolution(computation: Computation, one: Instruction) -> int:
    labels = re.search(r"dim_labels=(\w+)_(\w+)->(\w+)", one.attributes)
    if labels is None:
        return 0
    left, kernel = (computation.instructions[name].arrays[0].dims for name in one.operands[:2])
    result = one.arrays[0].dims
    inputs, weights, outputs = (
        dict(zip(names, dims, strict=True)) for names, dims in zip(labels.groups(), (left, kernel, result), strict=True)
    )
    window = _window(one.attributes)
    pairs = 1
    for axis in (name for name in outputs if name.isdigit()):
        pairs *= _meeting(inputs[axis], weights[axis], outputs[axis], *window[int(axis)])
    return 2 * outputs["b"] * outputs["f"] * weights["i"] * pairs


def _window(attributes: str) -> list[tuple[int, int, int, int]]:
    """For each spatial dimension: stride, low padding, dilation of the input, dilation of the kernel."""
    found = re.search(r"window=\{([^}]*)\}", attributes)
    parts = dict(part.split("=") for part in found[1].split()) if found else {}
    sizes = parts.get("size", "").split("x") if parts.get("size") else []

    def numbers(key: str, default: str) -> list[int]:
        return [int(value.split("_")[0]) for value in parts.get(key, "x".join([default] * len(sizes))).split("x")]

    keys = (("stride", "1"), ("pad", "0_0"), ("lhs_dilate", "1"), ("rhs_dilate", "1"))
    return list(zip(*(numbers(key, default) for key, default in keys), strict=True)) if sizes else []


def _meeting(
    size: int, kernel: int, result: int, stride: int, padding: int, dilation: int, kernel_dilation: int
) -> int:
    """Pairs of a place of the result and a place of the kernel that meet an element of the input."""
    reach = (size - 1) * dilation
    common = math.gcd(stride, dilation)
    period = dilation // common
    inverse = pow(stride // common, -1, period)
    total = 0
    for k in range(kernel):
        # Place o of the result reads at o * stride + offset, of which multiples of `dilation` in [0, reach] exist.
        offset = k * kernel_dilation - padding
        low = max(0, -(offset // stride))
        high = min(result - 1, (reach - offset) // stride)
        if offset % common == 0:
            first = -offset // common * inverse % period  # o * stride + offset is a multiple of dilation there, and
            total += max(0, (high - first) // period - (low - 1 - first) // period)  # again after every period
    return total


def traffic(program: Program, computation: Computation, one: Instruction) -> float:
    """Bytes an instruction reads from the chip's memory and writes to it.

    A fusion that takes a slice of an operand reads the slice; one that writes a slice into an operand writes the slice.
    """
    operands = [computation.instructions[name] for name in one.operands if name in computation.instructions]
    match one.opcode:
        case opcode if opcode in NO_TRAFFIC or "AllocateBuffer" in one.attributes:
            return 0.0
        case opcode if opcode in SLICES:
            return _moved(one.arrays[-1])
        case "slice-start" | "dynamic-slice-start":  # (operands, result, flags)
            return _moved(one.arrays[len(one.operands)])
        case "dynamic-update-slice" | "scatter":
            return 2 * _size(operands[1 if one.opcode == "dynamic-update-slice" else -1])
        case "fusion":
            (inner,) = (program.computations[name] for name in one.called("calls"))
            return _fusion(program, inner, one, operands)
        case opcode:
            result = one.arrays[:1] if opcode == "copy-start" else one.arrays
            return sum(_in_hbm(operand.arrays) for operand in operands) + _in_hbm(result)


def _moved(part: hlo.Array) -> float:
    """Bytes of a slice that is read and, unless it goes to the inner memory, written."""
    return part.bytes * (1 + part.is_in_hbm)


def _in_hbm(arrays: Sequence[hlo.Array]) -> float:
    return sum(array.bytes for array in arrays if array.is_in_hbm)


def _fusion(program: Program, inner: Computation, fusion: Instruction, operands: list[Instruction]) -> float:
    updates = list(_updates(inner))
    in_place = {_origin(inner, update.operands[0]) for update in updates}
    total = 0.0
    for index, operand in enumerate(operands):
        if not all(array.is_in_hbm for array in operand.arrays):
            continue
        whole = _size(operand)
        readers = list(_readers(program, inner, index))
        if readers and all(reader.opcode in SLICES for reader in readers):
            whole = min(whole, sum(_size(reader) for reader in readers))
        elif str(index) in in_place and all(reader in updates for reader in readers):
            whole = 0.0
        total += whole
    written = _in_hbm(fusion.arrays)
    for update in updates:
        part = inner.instructions.get(update.operands[1])
        if part is not None and update.arrays[0].bytes <= written:
            written += _size(part) - update.arrays[0].bytes
    return total + written


def _origin(inner: Computation, name: str) -> str | None:
    """The number of the parameter that a value is, seen through what only passes it on."""
    one = inner.instructions.get(name)
    while one is not None and one.opcode in PASSED_ON and one.operands:
        one = inner.instructions.get(one.operands[0])
    return one.literal if one is not None and one.opcode == "parameter" else None


def _size(one: Instruction) -> float:
    return sum(array.bytes for array in one.arrays)


def _readers(program: Program, inner: Computation, index: int) -> Iterator[Instruction]:
    """Who reads a parameter of a fusion, seen through fusions inside of it and through what only passes it on."""
    waiting = [
        one.name for one in inner.instructions.values() if one.opcode == "parameter" and one.literal == str(index)
    ]
    while waiting:
        name = waiting.pop()
        for user in inner.users.get(name, []):
            if user.opcode == "bitcast":
                waiting.append(user.name)
            elif user.opcode == "fusion":
                (called,) = user.called("calls")
                for place, operand in enumerate(user.operands):
                    if operand == name:
                        yield from _readers(program, program.computations[called], place)
            else:
                yield user


def _updates(inner: Computation) -> Iterator[Instruction]:
    """The slices that a fusion's results are made by writing."""
    root = inner.root
    for name in root.operands if root.opcode == "tuple" else (root.name,):
        one = inner.instructions.get(name)
        while one is not None and one.opcode in PASSED_ON and one.operands:
            one = inner.instructions.get(one.operands[0])
        if one is not None and one.opcode == "dynamic-update-slice":
            yield one
