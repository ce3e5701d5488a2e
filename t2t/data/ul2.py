"""UL2's mixture of denoisers: seven objectives, each announced to the model by a mode before its inputs.

    r3_15   r8_15                     [NLU]  15 % noise in spans of 3 and 8 (T5's own objective)
    x3_50   x8_50   x64_15   x64_50   [NLG]  extreme: half of the text, or spans of 64
    s25     s50                       [S2S]  the text goes on after a prefix; a quarter of it, or half, on average

Texts that fill 512 inputs (one less for the text where a mode takes a position), and the targets they need, EOS
included; x3_50 makes 128 spans of 512 inputs and 256 of 1,024, and T5's vocabulary has 100 sentinels:

    r3_15 568, 114    r8_15 588, 100    x3_50 766, 512    x8_50 908, 512    x64_15 600, 92    x64_50 1006, 512

Reference: Tay et al., "UL2: Unifying Language Learning Paradigms", arXiv:2205.05131, section 3.1, table 1 and the
listing of its appendix.
"""

import dataclasses
from collections.abc import Mapping
from typing import Literal

import numpy as np

from t2t.data import registry, vocabularies  # isort: skip - sets up TensorFlow
import seqio

from t2t.data.corruption_base import BoundCorruption, Corruption, Features, Lengths, Side
from t2t.data.denoisers import PrefixLM, SpanCorruption

ModeAs = Literal["token", "text"] | None
"""How a mode is written: as a token of its own, as ordinary text, or not at all."""

REGULAR, EXTREME, SEQUENTIAL = "[NLU]", "[NLG]", "[S2S]"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Denoiser(Corruption):
    """An objective whose inputs begin with the mode that it trains.

    The mode comes before the inputs when they are finished, so that it is never noise; the positions it takes are kept
    free for it.

    Example:
        >>> Denoiser(objective=SpanCorruption(noise_density=0.5), mode="[NLG]").mode_as
        'token'

    Reference: arXiv:2205.05131, section 3.1.3 (mode switching).

    Differs: the released models have no tokens for modes: theirs are text ("[NLU]" is four pieces of T5's vocabulary),
    which is `mode_as="text"`; and the published code does not keep room for it, so that the end of the inputs is cut.
    """

    objective: Corruption
    """What makes inputs and targets of the text."""
    mode: str
    """The name of the mode: [NLU], [NLG] or [S2S]; as text any other."""
    mode_as: Literal["token", "text"] = "token"
    """A token of the vocabulary, or the ordinary pieces of the name, which every vocabulary has."""
    mode_ids: tuple[int, ...] = dataclasses.field(default=(), repr=False)
    """Set by `bind`."""

    makes = ("inputs", "targets")

    def __post_init__(self):
        """Refuse objectives of another kind."""
        if getattr(self.objective, "makes", None) != self.makes or self.objective.weighs:
            raise ValueError(
                f"objective={self.objective!r} must make inputs and targets, such as SpanCorruption() and PrefixLM()"
            )
        if self.objective.feature != self.feature:
            raise ValueError(
                f"feature={self.feature!r} must be that of the objective, which reads {self.objective.feature!r}"
            )
        if not self.mode.strip():
            raise ValueError(f"mode={self.mode!r} must be a name, such as [NLU]")

    def bind(self, sequence_length: Lengths, output_features: Features) -> BoundCorruption:
        """See `Corruption.bind`; raises ValueError where the vocabulary has no such mode too."""
        special = Side.of("inputs", sequence_length, output_features).special
        ids = self._find_ids(output_features["inputs"].vocabulary, special)
        return Corruption.bind(dataclasses.replace(self, mode_ids=ids), sequence_length, output_features)

    def _find_ids(self, vocabulary: seqio.Vocabulary, special: vocabularies.SpecialTokens) -> tuple[int, ...]:
        if self.mode_as == "text":
            ids = vocabularies.encode_batch(vocabulary, [self.mode])[0]
            if not ids or vocabulary.unk_id in ids:
                raise ValueError(f"the vocabulary cannot write the mode {self.mode!r}: its ids are {ids}")
            return tuple(ids)
        if self.mode not in special.modes:
            held = f"the modes {', '.join(special.modes)}" if special.modes else "no mode tokens"
            raise ValueError(
                f"the mode {self.mode} is no token of the vocabulary, which has {held}: train one with "
                "t2t vocab train --modes --sentinels 300, or write modes as ordinary text, as the released UL2 does, "
                "with mode_as='text'"
            )
        return (special.modes[self.mode],)

    def raw_length(self, sides: Mapping[str, Side]) -> int | None:
        """That of the objective, in inputs that are shorter by the mode."""
        inputs, number = sides["inputs"], len(self.mode_ids)
        if inputs.length is None:
            return self.objective.raw_length(sides)
        if inputs.length <= number:
            raise ValueError(f"inputs of length {inputs.length} have no room beside the mode {self.mode}")
        room = dataclasses.replace(inputs, length=inputs.length - number)
        try:
            return self.objective.raw_length({**sides, "inputs": room})
        except ValueError as error:
            raise ValueError(f"{error} ({self.mode} takes {number} of {inputs.length} inputs)") from error

    @property
    def keeps_lengths_equal(self) -> bool:
        """As the objective."""
        return self.objective.keeps_lengths_equal

    def num_uniforms(self, length: int, sides: Mapping[str, Side]) -> int:
        """As the objective."""
        return self.objective.num_uniforms(length, sides)

    def corrupt(self, tokens: np.ndarray, u: np.ndarray, sides: Mapping[str, Side]) -> dict[str, np.ndarray]:
        """Inputs, behind the mode, and targets."""
        made = self.objective.corrupt(tokens, u, sides)
        inputs, number = made["inputs"], len(self.mode_ids)
        out = np.empty((*inputs.shape[:-1], number + inputs.shape[-1]), inputs.dtype)
        out[..., :number] = self.mode_ids
        out[..., number:] = inputs
        return {**made, "inputs": out}


def denoisers(*, mode_as: ModeAs = "token", overflow: Literal["refuse", "merge"] = "refuse") -> dict[str, Corruption]:
    """UL2's denoisers by short name: two regular, four extreme, and the sequential one in both published forms.

    Args:
        mode_as: how modes are written; None leaves them out.
        overflow: what to do where spans outnumber sentinels, see `SpanCorruption`.

    Reference: arXiv:2205.05131, table 1. Its sequential denoiser has 25 % of the text in the targets; the published
    code calls T5's prefix language modelling, whose mean is 50 %.
    """

    def spans(mean: float, density: float) -> SpanCorruption:
        return SpanCorruption(mean_noise_span_length=mean, noise_density=density, overflow=overflow)

    modes: dict[str, dict[str, Corruption]] = {
        REGULAR: {"r3_15": spans(3.0, 0.15), "r8_15": spans(8.0, 0.15)},
        EXTREME: {
            "x3_50": spans(3.0, 0.5), "x8_50": spans(8.0, 0.5), "x64_15": spans(64.0, 0.15), "x64_50": spans(64.0, 0.5)
        },
        SEQUENTIAL: {"s25": PrefixLM(noise_density=0.25), "s50": PrefixLM(noise_density=0.5)},
    }  # fmt: skip
    return {
        name: objective if mode_as is None else Denoiser(objective=objective, mode=mode, mode_as=mode_as)
        for mode, objectives in modes.items()
        for name, objective in objectives.items()
    }


def mixture_rates(*, sequential: Literal["s25", "s50"] = "s25") -> dict[str, dict[str, float]]:
    """The rates of UL2's two published mixtures by suffix: all seven alike, or 40 % R, 40 % X and 20 % S.

    Example:
        >>> {name: round(rate, 3) for name, rate in mixture_rates()["ul2_40_40_20"].items()}
        {'r3_15': 0.2, 'r8_15': 0.2, 'x3_50': 0.1, 'x8_50': 0.1, 'x64_15': 0.1, 'x64_50': 0.1, 's25': 0.2}
    """
    seven = [name for name in denoisers() if name[0] != "s" or name == sequential]
    shares = {"r": 0.4 / 2, "x": 0.4 / 4, "s": 0.2}
    return {"ul2": dict.fromkeys(seven, 1.0), "ul2_40_40_20": {name: shares[name[0]] for name in seven}}


def add_ul2(
    name: str,
    source: seqio.DataSource,
    *,
    field: str = "text",
    mode_as: ModeAs = "token",
    overflow: Literal["refuse", "merge"] = "refuse",
    sequential: Literal["s25", "s50"] = "s25",
) -> tuple[str, ...]:
    """Register UL2's denoisers on a source of documents, one task each, and its mixtures; returns their names.

        NAME_ul2_r3_15, NAME_ul2_r8_15, NAME_ul2_x3_50, NAME_ul2_x8_50, NAME_ul2_x64_15, NAME_ul2_x64_50,
        NAME_ul2_s25, NAME_ul2_s50      the tasks
        NAME_ul2                        seven of them at equal rates
        NAME_ul2_40_40_20               40 % R, 40 % X, 20 % S

    Targets must be as long as inputs for those that hide half of the text. With T5's own vocabulary, of 100 sentinels
    and without mode tokens, take `mode_as="text"` and, beyond some 400 inputs, `overflow="merge"`. Each task of a
    mixture keeps the corpus in memory, cut to its own raw length.

    Args:
        name: of the corpus, the first part of all names.
        source: of examples with a field of text.
        field: the name of that field.
        mode_as: how modes are written, see `Denoiser`; None leaves them out.
        overflow: what to do where spans outnumber sentinels, see `SpanCorruption`.
        sequential: which sequential denoiser the mixtures have.
    """
    tasks = denoisers(mode_as=mode_as, overflow=overflow)
    for short, corruption in tasks.items():
        registry.add_objective(f"{name}_ul2_{short}", source, corruption, field=field)
    mixtures = mixture_rates(sequential=sequential)
    for suffix, rates in mixtures.items():
        registry.add_mixture(f"{name}_{suffix}", {f"{name}_ul2_{short}": rate for short, rate in rates.items()})
    return (*(f"{name}_ul2_{short}" for short in tasks), *(f"{name}_{suffix}" for suffix in mixtures))
