"""Where parameters come from: fresh ones, or those of a run, a checkpoint, a model or a Hugging Face directory."""

import logging
from typing import Any

import jax
from flax import traverse_util

from t2t import sharding
from t2t.errors import UsageError
from t2t.hf import table
from t2t.models.electra import DISCRIMINATOR, GENERATOR, ElectraConfig, is_within
from t2t.train import build, sources, transfer, trees
from t2t.train import state as state_lib
from t2t.train.build import Pieces
from t2t.vocabulary import Vocabulary

log = logging.getLogger(__name__)


def load_params(source: sources.Source, pieces: Pieces) -> dict[str, Any]:
    """The parameters of a run, read one by one from another model and placed on the mesh.

    Heads and poolers that the source lacks are fresh; those that the model lacks are left out: they belong to what a
    model was trained for. With `init_partial` the same holds for whatever does not fit. Of a pair, another pair gives
    both models, and a single model the discriminator.

    Raises:
        UsageError: arrays that are missing, left over or of another shape, each is listed; with `init_partial`, when
            nothing fits.
    """
    if "model" in pieces.state.params:
        return {"model": _load_role(source, pieces, "model")}
    if isinstance(pieces.experiment.model, ElectraConfig) and pieces.experiment.model.sharing == "disentangled":
        raise UsageError(
            "init: a discriminator with sharing='disentangled' begins at its generator's tables; leave it out"
        )
    found = {DISCRIMINATOR: _load_role(source, pieces, DISCRIMINATOR)}
    if GENERATOR in pieces.state.params and source.role is not None:
        found[GENERATOR] = _load_role(sources.open_source(source.path, role=GENERATOR), pieces, GENERATOR)
    elif GENERATOR in pieces.state.params:
        log.warning("%s is one model, the discriminator: what is the generator's alone begins fresh", source.path)
        found[GENERATOR] = fresh_params(pieces)[GENERATOR]
    return found


def _load_role(source: sources.Source, pieces: Pieces, role: str) -> Any:
    network = pieces.models[role]
    borrowed = getattr(network, "shared", ())
    wanted = trees.by_path(pieces.state.params[role])
    there = {path: leaf for path, leaf in source.shapes.items() if not is_within(path, borrowed)}  # the other has them
    fit = transfer.compare(there, wanted, free=table.HEAD_PATHS)
    if not fit.is_exact and not pieces.experiment.init_partial:
        raise UsageError(
            f"the parameters of {source.path} do not fit the model:\n  " + "\n  ".join(fit.misfits()) + "\n"
            "Give the model those sizes, or --init-partial to take what fits and begin with fresh parameters elsewhere"
        )
    if not fit.taken:
        raise UsageError(f"no parameter of {source.path} fits the model:\n  " + "\n  ".join(fit.misfits()))
    if pieces.experiment.init_partial:
        log.info("the parameters of %s in this model:\n  %s", source.path, "\n  ".join(fit.lines()))
    elif fit.fresh:
        log.warning("%s does not hold %s: these begin fresh", source.path, ", ".join(fit.fresh))
    if fit.unused and not pieces.experiment.init_partial:
        log.info("%s of %s have no place in the model and are left out", ", ".join(fit.unused), source.path)
    begin_fresh = [*fit.fresh, *fit.other_shape]
    fresh = trees.by_path(fresh_params(pieces)[role]) if begin_fresh else {}
    asked = {path: wanted[path] for path in fit.taken}
    params = {path: fresh[path] for path in begin_fresh} | dict(source.leaves(asked))
    nested = traverse_util.unflatten_dict(params, sep="/")
    return trees.from_nested(nested, like=pieces.state.params[role])


def fresh_params(pieces: Pieces) -> dict[str, Any]:
    """New parameters by role, drawn from the seed of the experiment; the same on any mesh."""
    init = jax.jit(lambda key: state_lib.init_params(pieces.models, key), out_shardings=pieces.shardings.params)
    with sharding.use_mesh(pieces.mesh):
        return init(jax.random.key(pieces.experiment.seed))


def make_state(params: dict[str, Any], pieces: Pieces) -> state_lib.TrainState:
    """The state of step 0 around these parameters, on the mesh."""

    def init(params: Any) -> state_lib.TrainState:
        return state_lib.init_state(
            params, pieces.optimizer, carry=build.initial_carry(pieces.experiment, pieces.models)
        )

    with sharding.use_mesh(pieces.mesh):
        return jax.jit(init, out_shardings=pieces.shardings)(params)


def load_vocabulary(source: sources.Source) -> Vocabulary:
    """The vocabulary of a source that has one.

    Raises:
        UsageError: its files are not understood.
    """
    try:
        return Vocabulary.load(source.vocabulary)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"the vocabulary of {source.path} is not understood: {error}. Restore it, or give files of the "
            "same one with --vocabulary"
        ) from error


def check_same_vocabulary(source: sources.Source, vocabulary: Vocabulary) -> None:
    """Refuses to read parameters whose embedding rows mean other tokens than the vocabulary of the run.

    Raises:
        UsageError: naming the first id that differs.
    """
    try:
        theirs = None if source.vocabulary is None else load_vocabulary(source).pieces()
    except UsageError as error:
        theirs = None
        log.warning("%s", error)
    if theirs is None:
        log.warning("%s holds no vocabulary: nothing tells whether its tokens are those of this run", source.path)
        return
    ours = vocabulary.pieces()
    for token, (left, right) in enumerate(zip(theirs, ours, strict=False)):
        if left != right:
            raise UsageError(
                f"the vocabulary of {source.path} is another one than the run's: id {token} is {left!r} there and "
                f"{right!r} here, so its embeddings would mean other tokens. Leave out `vocabulary` to take that of "
                "the model, or drop `init`."
            )
