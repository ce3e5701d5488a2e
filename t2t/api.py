"""The public surface in Python: a model with its parameters and vocabulary, made, loaded, used and exported.

Everything here is a thin front: presets and names live in `t2t.families`, the mathematics in `t2t.models`, decoding in
`t2t.decode`, files in `t2t.train` and `t2t.hf`.
"""

import dataclasses
import functools
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from t2t import config_values, types
from t2t.decode import decoding as decoding_lib
from t2t.decode import generate as generate_lib
from t2t.decode import refusal
from t2t.decode import score as score_lib
from t2t.errors import UsageError
from t2t.families import preset, presets
from t2t.models.base import Network, Output, count_parameters
from t2t.models.decoder import DecoderConfig
from t2t.models.encoder import EncoderConfig
from t2t.models.encoder_decoder import EncoderDecoderConfig
from t2t.nn.heads import LanguageModelHead
from t2t.vocabulary import Vocabulary
from t2t.vocabulary.frame import Frame

__all__ = ["Model", "count_parameters", "init", "preset", "presets", "start_id"]


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """A config, its parameters and its vocabulary.

    Attributes:
        config: EncoderConfig, DecoderConfig or EncoderDecoderConfig.
        params: nested dict of arrays.
        vocabulary: text to ids and back; None where the directory held none (then only `apply` and `export` work).
        dtype: of activations and matrix products.
        start_id: token that a decoder starts with; None for decoders whose text begins with the prompt itself.
        about: what is known of its training: where it comes from, step, metrics, the experiment as JSON.

    Raises:
        ValueError: `dtype` is none that models compute in, such as float16, in which they overflow.
    """

    config: Any
    params: Any
    vocabulary: Vocabulary | None = None
    dtype: Any = jnp.float32
    start_id: int | None = None
    about: dict[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        Network(self.config, dtype=self.dtype)  # refuses a type now, and not when something is computed

    @functools.cached_property
    def network(self) -> Network:
        """The model as pure functions of its parameters."""
        return Network(self.config, dtype=self.dtype)

    def apply(
        self,
        batch: types.Batch,
        *,
        deterministic: bool = True,
        key: jax.Array | None = None,
        hidden_states: bool = False,
        attentions: bool = False,
    ) -> Output:
        """What the model computes for a batch of seqio keys (see `t2t.types`): logits, hidden states, ...

        Args:
            batch: int32 arrays, NumPy's or JAX's.
            deterministic: without dropout; False needs a key.
            key: of the dropout.
            hidden_states: whether to return those of every layer.
            attentions: whether to return the attention weights of every layer.
        """
        return _apply(
            self.network,
            self.params,
            dict(batch),
            key=key,
            deterministic=deterministic,
            hidden_states=hidden_states,
            attentions=attentions,
        )

    def generate(
        self,
        texts: Sequence[str],
        *,
        beams: int = 1,
        max_tokens: int = 64,
        min_tokens: int = 0,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        length_penalty: float = 0.6,
        start: str | None = None,
        seed: int = 0,
        batch_size: int = 32,
        on_batch: Callable[[int], None] = lambda done: None,
    ) -> list[str]:
        """What the model writes for each text, in order: an encoder-decoder's output, a decoder's continuation.

        Args:
            texts: inputs or prompts.
            beams: texts that beam search keeps; 1 = greedy, or sampling.
            max_tokens: most tokens generated for a text.
            min_tokens: tokens generated before the text may end.
            temperature: 0 = greedy; else tokens are drawn from the distribution at this temperature.
            top_k: draw among the k most probable tokens.
            top_p: draw among the most probable tokens that hold this probability.
            length_penalty: exponent of beam search's penalty, ((5 + length) / 6)^length_penalty.
            start: special token that the decoder starts with instead of the model's own, such as mBART's code of the
                language to write, "ro_RO".
            seed: of the sampling.
            batch_size: most texts generated at once.
            on_batch: called with the number of texts done after each batch.

        Raises:
            UsageError: a `start` that is no special token of the vocabulary.
            TextError: a text that the model has no room for, or the device no memory.
            ValueError: for a model that does not generate or has no vocabulary, and settings that cannot be.
        """
        texts = _as_texts(texts)
        vocabulary = self._vocabulary()
        settings = decoding_lib.Decoding(
            eos_id=vocabulary.eos_id,
            pad_id=vocabulary.pad_id or 0,
            max_tokens=max_tokens,
            min_tokens=min_tokens,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            beams=beams,
            length_penalty=length_penalty,
            vocab_size=vocabulary.size,
            first_id=self._first_id,
        )
        rows = generate_lib.generate(
            self.network,
            self.params,
            self._inputs(texts),
            decoding=settings,
            start_id=self._start(start),
            batch_size=batch_size,
            seed=seed,
            on_batch=on_batch,
        )
        return vocabulary.decode_batch(rows)

    def score(
        self,
        texts: Sequence[str | tuple[str, str]],
        *,
        reduction: Literal["sum", "mean"] = "sum",
        batch_size: int = 32,
        on_batch: Callable[[int], None] = lambda done: None,
    ) -> np.ndarray:
        """Natural log-probability of each text, or of each target given its input, end token included; float64 [N].

        Args:
            texts: texts, or (input, target) pairs; encoder-decoders need pairs.
            reduction: sum over the target tokens, or their mean.
            batch_size: most texts scored at once.
            on_batch: called with the number of texts done after each batch.

        Raises:
            TextError: a text that the model has no room for, or the device no memory.
            ValueError: for an encoder, single texts given to an encoder-decoder, or a model without a vocabulary.
        """
        if isinstance(texts, str):
            raise ValueError("score takes a sequence of texts or pairs, not one string: put it in a list")
        vocabulary = self._vocabulary()
        if not isinstance(self.config, DecoderConfig) and any(isinstance(text, str) for text in texts):
            raise ValueError("this model scores a target given an input: give (input, target) pairs")
        pairs = [("", text) if isinstance(text, str) else tuple(text) for text in texts]
        end = [] if vocabulary.eos_id is None else [vocabulary.eos_id]
        encoded = vocabulary.encode_batch([target for _, target in pairs])
        targets = [self._frame.fit([*target, *end])[0] for target in encoded]
        return score_lib.score(
            self.network,
            self.params,
            list(zip(self._inputs([first for first, _ in pairs]), targets, strict=True)),
            start_id=self._starts(targets),
            reduction=reduction,
            batch_size=batch_size,
            on_batch=on_batch,
        )

    def export(
        self,
        directory: str | os.PathLike,
        *,
        dtype: str = "float32",
        sentence_embeddings: Literal["mean", "first"] | None = None,
        max_shard_bytes: int | None = None,
    ) -> list[str]:
        """Write a directory that Hugging Face transformers opens; returns the names of its files.

        Args:
            directory: made if missing.
            dtype: of the tensors: float32, bfloat16 or float16.
            sentence_embeddings: of an encoder, whose head is left out: how SentenceTransformer(directory) makes one
                vector of its states.
            max_shard_bytes: above this size the tensors are divided among files, with an index; None = 50 GB.

        Raises:
            ValueError: where no class of transformers computes what this model does; says why.
        """
        from t2t.hf import export, files
        from t2t.hf import sentence_embeddings as vectors

        config, params = self.config, self.params
        if sentence_embeddings is not None:
            config, params = vectors.without_head(config, params)
        return export.export(
            directory,
            config=config,
            params=params,
            vocabulary=self.vocabulary,
            card=_card(Path(directory).resolve().name, self.about),
            generation=_generation(config, self.about),
            origin=self.about.get("origin"),
            bare_prompts=self.start_id is None,
            ends_prompts=self._ends_prompts,
            start_id=None if self.vocabulary is None else self.start_id,
            dtype=dtype,
            max_shard_bytes=files.MAX_SHARD_BYTES if max_shard_bytes is None else max_shard_bytes,
            sentence_embeddings=sentence_embeddings,
        )

    def _vocabulary(self) -> Vocabulary:
        if self.vocabulary is None:
            reason = self.about.get("no_vocabulary")
            raise ValueError(
                f"this model has no vocabulary to read text with{f' ({reason})' if reason else ''}: load it from a "
                "directory that holds one, or set "
                "dataclasses.replace(model, vocabulary=t2t.vocabulary.Vocabulary.load(path))"
            )
        return self.vocabulary

    @property
    def _first_id(self) -> int | None:
        """The token that begins every generated text: that of its published files, or of the frame of its targets."""
        origin = self.about.get("origin", {})
        if "generation" in origin:
            return origin["generation"].get("forced_bos_token_id")
        return self._frame.bos_id

    @functools.cached_property
    def _frame(self) -> Frame:
        from t2t.hf import frames

        return frames.of(self.config, self.vocabulary)

    def _starts(self, targets: Sequence[Sequence[int]]) -> int | list[int] | None:
        """What the decoder of each target starts with, where they differ."""
        if not self._frame.language_ids:
            return self.start_id
        starts = [self._frame.start_id(target[-1], usual=self.start_id) for target in targets]
        if None in starts:
            raise refusal.TextError(
                starts.index(None),
                "has a target that does not end with the code of its language, with which this model's decoder starts: "
                'write it behind every target, such as "Salut. ro_RO"',
            )
        return starts

    def _start(self, name: str | None) -> int | None:
        """The id of the special token that the decoder shall start with; None = the model's own."""
        if name is None and self.start_id is None and self._frame.language_ids:
            raise UsageError(
                'this model\'s decoder starts with the code of the language to write: give start="ro_RO" '
                "(t2t generate --start ro_RO)"
            )
        if name is None:
            return self.start_id
        pieces = self._vocabulary().pieces()
        named = {pieces[token].removeprefix("▁"): token for token in self._vocabulary().special_ids}
        if name not in named:
            shown = ", ".join(sorted(named)[:50])
            raise UsageError(f"start={name!r} is no special token of the vocabulary; possible are {shown}")
        return named[name]

    def _inputs(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of inputs in their frame, with the end token where a task ends its inputs with one.

        The prompts of a causal decoder are bare, unless it was trained on pairs of inputs and targets.
        """
        vocabulary = self._vocabulary()
        rows = vocabulary.encode_batch(texts)
        causal = isinstance(self.config, DecoderConfig) and not self.config.prefix_attention
        if (causal and not self._ends_prompts) or vocabulary.eos_id is None:
            return rows
        # The empty input of a prefix-LM stays empty: it is a text without a prefix.
        both_sides = isinstance(self.config, EncoderDecoderConfig)
        return [self._frame.fit([*row, vocabulary.eos_id])[0] if row or both_sides else [] for row in rows]

    @property
    def _ends_prompts(self) -> bool:
        """Whether an end token follows the prompts of a decoder: those it learned from, or its tokenizer, say so."""
        learned = self.about.get("experiment")
        pairs = learned is not None and "inputs" in learned["data"]["lengths"]
        return isinstance(self.config, DecoderConfig) and (pairs or bool(self.about.get("ends_prompts")))


@functools.partial(jax.jit, static_argnames=("network", "deterministic", "hidden_states", "attentions"))
def _apply(network: Network, params, batch, *, key, deterministic, hidden_states, attentions) -> Output:
    return network.apply(
        params, batch, key=key, deterministic=deterministic, hidden_states=hidden_states, attentions=attentions
    )


def _as_texts(texts: Sequence[str]) -> list[str]:
    if isinstance(texts, str):
        raise ValueError("generate takes a sequence of texts, not one string: put it in a list")
    return list(texts)


def init(config: Any, *, seed: int = 0, vocabulary: Vocabulary | None = None) -> Model:
    """A model with fresh parameters, distributed as published for its family.

    Args:
        config: from `preset`, or made by hand.
        seed: of the parameters.
        vocabulary: to read text with.
    """
    params = jax.jit(Network(config).init)(jax.random.key(seed))
    return Model(config=config, params=params, vocabulary=vocabulary, start_id=start_id(config, vocabulary))


def start_id(config: Any, vocabulary: Vocabulary | None) -> int | None:
    """The token before a decoder's text that a model of ours was trained with; None for encoders."""
    from t2t.train import build

    if isinstance(config, EncoderConfig):
        return None
    return 0 if vocabulary is None else build.start_id(vocabulary)


def _generation(config: Any, about: dict[str, Any]) -> dict[str, Any] | None:
    """How transformers shall generate unless told otherwise: as long and with as many beams as the training's tasks.

    None, which is transformers' own way, for heads that score and what was trained on no pairs of inputs and targets.
    """
    learned = about.get("experiment")
    writes = isinstance(config, DecoderConfig | EncoderDecoderConfig) and isinstance(config.head, LanguageModelHead)
    if learned is None or not writes or "inputs" not in learned["data"]["lengths"]:
        return None
    experiment = config_values.from_json(learned)
    settings = {"max_new_tokens": experiment.data.lengths["targets"]}
    if experiment.evaluate.beams > 1:
        settings |= {"num_beams": experiment.evaluate.beams, "early_stopping": True}
    return settings


def _card(name: str, about: dict[str, Any]) -> Any:
    from t2t.hf import card

    if "experiment" not in about:
        return card.Card(name=name)
    experiment = config_values.from_json(about["experiment"])
    digest = hashlib.sha256(json.dumps(about["experiment"], sort_keys=True).encode()).hexdigest()
    optimizer, objective = type(experiment.optimizer).__name__, type(experiment.objective).__name__
    learned = experiment.data.train
    return card.Card(
        name=name,
        base_model=experiment.init,
        recipe=f"{objective} for {about['step']:,} steps of {experiment.data.batch_size} rows with {optimizer}, "
        f"seed {experiment.seed}, trained by t2t {about['t2t']}.",
        data=learned if isinstance(learned, str) else ", ".join(f"{task} ({rate:g})" for task, rate in learned.items()),
        metrics=about["metrics"],
        provenance={"experiment": experiment.name, "step": about["step"], "config sha256": digest},
    )
