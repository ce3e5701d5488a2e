"""Two encoders that train together: a generator of replacements for hidden words, and a discriminator that finds them.

Parameters are {"generator": tree, "discriminator": tree}. What the two share is in one of the trees alone, so that the
optimizer sees it once and it has the gradients of both.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import jax
import jax.numpy as jnp
from flax import traverse_util
from jax import Array

from t2t.models.base import Network, Params
from t2t.models.encoder import EncoderConfig
from t2t.nn import checks
from t2t.nn.classification import ClassificationHead
from t2t.nn.heads import MaskedLanguageModelHead

Sharing = Literal["none", "embeddings", "all", "disentangled"]
SHARINGS: tuple[Sharing, ...] = ("none", "embeddings", "all", "disentangled")
GENERATOR, DISCRIMINATOR = "generator", "discriminator"
ROLES = (GENERATOR, DISCRIMINATOR)

_TABLES = ("embed/embedding", "embed/positions", "embed/types")
_SHARED: dict[Sharing, tuple[str, ...]] = {
    "none": (),
    "embeddings": (*_TABLES, "embed/norm"),
    "all": ("embed", "encoder"),
    "disentangled": _TABLES,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ElectraConfig:
    """A generator and a discriminator of the same vocabulary. The discriminator is the model that is kept.

    Reference: Clark et al., "ELECTRA", arXiv:2003.10555, section 3.2 and figure 3; the embeddings that are shared are
        the tables of tokens, positions and types and their norm, as in google-research/electra (modeling.py). He et
        al., "DeBERTaV3", arXiv:2111.09543, section 3.2, for the disentangled ones.
    """

    discriminator: EncoderConfig
    """With a head that scores each token, or one for masked words where the objective has it predict them."""
    generator: EncoderConfig | None = None
    """With a head for masked words; None where the objective draws the replacements without a model."""
    sharing: Sharing = "embeddings"
    """none; the embeddings (tables of the same width); all (encoders of the same sizes), all but the heads; or
    disentangled: the discriminator reads the generator's tables plus a difference of its own, which begins at 0, and
    its gradient does not reach the generator's."""

    def __post_init__(self):
        """Refuses a pair that cannot share what it shall share, and heads that do something else."""
        checks.check_choice(self, "sharing", SHARINGS)
        if self.generator is None:
            return
        if not isinstance(self.generator.head, MaskedLanguageModelHead):
            raise ValueError(
                f"ElectraConfig.generator has the head {self.generator.head!r}: it must predict masked words. Give its "
                "preset head=heads.MaskedLM()."
            )
        if self.generator.vocab_size != self.discriminator.vocab_size:
            raise ValueError(
                f"ElectraConfig: the generator has {self.generator.vocab_size} embedding rows and the discriminator "
                f"{self.discriminator.vocab_size}: one draws what the other reads. Give both the same vocab_size."
            )
        ours, theirs = (_shared_shapes(config, self.sharing) for config in (self.generator, self.discriminator))
        different = sorted(path for path in ours | theirs if ours.get(path) != theirs.get(path))
        if different:
            path = different[0]
            raise ValueError(
                f"ElectraConfig.sharing = {self.sharing!r}, but {len(different)} of the parameters to be shared differ,"
                f" the first {path}: {ours.get(path, 'absent')} in the generator, {theirs.get(path, 'absent')} in the "
                "discriminator. Give the generator the same sizes (embed_dim for sharing='embeddings'), or share less "
                "(sharing='none')."
            )

    @property
    def reader(self) -> EncoderConfig:
        """The model that reads the batches of the data."""
        return self.discriminator if self.generator is None else self.generator

    @property
    def vocab_size(self) -> int:
        """Rows of the token tables."""
        return self.discriminator.vocab_size

    def configs(self) -> dict[str, EncoderConfig]:
        """The models by role."""
        found = {} if self.generator is None else {GENERATOR: self.generator}
        return {**found, DISCRIMINATOR: self.discriminator}

    def networks(self, **options: Any) -> dict[str, "SharingNetwork"]:
        """Networks by role; options are those of `Network`."""
        return {
            role: SharingNetwork(config, role=role, shared=self._shared(role), adds=self._adds, **options)
            for role, config in self.configs().items()
        }

    def origins(self, role: str, path: str) -> tuple[str, ...]:
        """Where the parameter at a path of a role's whole model is kept: the roles whose arrays there are added."""
        network = self.networks()[role]
        if not is_within(path, network.shared):
            return (role,)
        return (network.lender, role) if network.adds else (network.lender,)

    @property
    def _adds(self) -> bool:
        return self.sharing == "disentangled"

    def _shared(self, role: str) -> tuple[str, ...]:
        borrower = DISCRIMINATOR if self._adds else GENERATOR
        return _SHARED[self.sharing] if role == borrower and self.generator is not None else ()


@dataclasses.dataclass(frozen=True)
class SharingNetwork(Network):
    """A network of a pair, some of whose parameters are the other's. Its functions of parameters take the whole model.

    Attributes:
        role: Name of its own parameters.
        shared: Paths at which it takes the other role's parameters.
        adds: Whether it adds its own to them, which begin at 0, and sends them no gradient.
    """

    role: str = DISCRIMINATOR
    shared: tuple[str, ...] = ()
    adds: bool = False

    @property
    def lender(self) -> str:
        """The role whose parameters it takes."""
        return GENERATOR if self.role == DISCRIMINATOR else DISCRIMINATOR

    def whole(self, params: Mapping[str, Params]) -> Params:
        """The parameters of the whole model, from the trees of both roles."""
        own = traverse_util.flatten_dict(params[self.role], sep="/")
        if not self.shared:
            return params[self.role]
        others = traverse_util.flatten_dict(params[self.lender], sep="/")
        for path, leaf in others.items():
            if is_within(path, self.shared):
                own[path] = jax.lax.stop_gradient(leaf) + own[path] if self.adds else leaf
        return traverse_util.unflatten_dict(own, sep="/")

    def init(self, key: Array) -> Params:
        """Random parameters of its own; a difference to the other's tables begins at 0."""
        whole = super().init(key)
        if not self.adds:
            return self._own(whole)
        return _map_within(whole, self.shared, jnp.zeros_like)

    def shapes(self) -> Params:
        """Shape and dtype of every parameter of its own; allocates nothing."""
        return self._own(super().shapes())

    def logical_axes(self) -> Params:
        """The logical axis names of every parameter of its own."""
        return self._own(super().logical_axes())

    def _own(self, tree: Params) -> Params:
        if self.adds or not self.shared:
            return tree
        flat = traverse_util.flatten_dict(tree, sep="/")
        kept = {path: leaf for path, leaf in flat.items() if not is_within(path, self.shared)}
        return traverse_util.unflatten_dict(kept, sep="/")


def _map_within(tree: Params, roots: Iterable[str], change: Any) -> Params:
    flat = traverse_util.flatten_dict(tree, sep="/")
    changed = {path: change(leaf) if is_within(path, roots) else leaf for path, leaf in flat.items()}
    return traverse_util.unflatten_dict(changed, sep="/")


def is_within(path: str, roots: Iterable[str]) -> bool:
    """Whether a path is one of these, or below one."""
    return any(path == root or path.startswith(f"{root}/") for root in roots)


def _shared_shapes(config: EncoderConfig, sharing: Sharing) -> dict[str, tuple[int, ...]]:
    if sharing == "none":
        return {}
    shapes = Network(config).shapes_by_path()
    return {path: shape for path, shape in shapes.items() if is_within(path, _SHARED[sharing])}


def check_discriminates(config: EncoderConfig) -> None:
    """Refuses a discriminator that does not judge each token.

    Raises:
        ValueError: with the head it needs.
    """
    if not (isinstance(config.head, ClassificationHead) and config.head.task == "replaced"):
        raise ValueError(
            f"the discriminator has the head {config.head!r}: replaced token detection needs one that judges each "
            "token. Give its preset head=heads.PRETRAINING."
        )
