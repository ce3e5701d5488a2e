"""From a config and parameters to a directory that transformers opens, versions 4.57 and 5 alike.

Nothing of torch or transformers is needed. Tensors are written one at a time; shared ones once, under the name of the
embedding; config.json has the types that transformers 5 insists on.

Reference: transformers 5.24 and 4.57, whose differences the tests of `tests/hf` pin down.
"""

import json
import logging
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from flax import traverse_util

from t2t import families, staging
from t2t import vocabulary as vocabularies
from t2t.hf import card as cards
from t2t.hf import config_map, files, frames, generation_settings, special_ids, table, tokenizer
from t2t.hf import sentence_embeddings as vectors
from t2t.models.decoder import DecoderConfig
from t2t.models.encoder import EncoderConfig
from t2t.models.encoder_decoder import EncoderDecoderConfig
from t2t.nn.classification import ClassificationHead

log = logging.getLogger(__name__)

TRANSFORMERS_VERSION = "5.24.0"
"""The version that exports are tested with, besides 4.57.6."""


def export(
    directory: str | os.PathLike,
    *,
    config: Any,
    params: Mapping[str, Any],
    vocabulary: vocabularies.Vocabulary | None = None,
    card: cards.Card | None = None,
    generation: Mapping[str, Any] | None = None,
    origin: Mapping[str, Any] | None = None,
    bare_prompts: bool = False,
    ends_prompts: bool = False,
    start_id: int | None = None,
    dtype: str = "float32",
    max_shard_bytes: int = files.MAX_SHARD_BYTES,
    sentence_embeddings: vectors.Pooling | None = None,
) -> list[str]:
    """Write a Hugging Face directory; returns the names of its files.

    Args:
        directory: made if missing; the files of an earlier export in it stay until the new ones are complete, and are
          replaced by these.
        config: of the model.
        params: a tree of arrays, or of anything that NumPy reads as one (memory maps are read one at a time).
        vocabulary: whose ids the model was trained with; None writes no tokenizer.
        card: what README.md says about the training.
        generation: settings of generation_config.json, such as max_new_tokens and num_beams.
        origin: what is known from the files that the model comes from (`load.HuggingFaceCheckpoint.origin`): attributes
          of config.json ("kept"), special ids for a model without a vocabulary ("special") and settings of
          generation_config.json ("generation"), where they mean something here.
        bare_prompts: whether a decoder's texts begin with the prompt itself, as the published GPTs' do, and not with
          the start token that t2t trains with.
        ends_prompts: whether the end token follows a decoder's texts, as it does the inputs of text-to-text tasks.
        start_id: token that starts the decoder of an encoder-decoder; None = that of the vocabulary.
        dtype: float32, bfloat16 or float16.
        max_shard_bytes: above this size the tensors are divided among files.
        sentence_embeddings: how SentenceTransformer(directory) makes one vector of the states of an encoder without a
          head; None writes no files for it.

    Raises:
        InexpressibleError: no class of transformers computes what this model does; says why.
        ValueError: a vocabulary that is larger than the embedding, settings that do not go together, or a directory
          that holds a run, checkpoint or model of t2t.
    """
    _check(config, vocabulary, dtype)
    family, attributes = families.expressing(config)
    (architecture,) = attributes["architectures"]
    special_ids.check_padding(attributes, vocabulary)
    padding = special_ids.padding(config, vocabulary, ends_prompts=ends_prompts)
    origin = origin or {}
    special = special_ids.attributes(config, family, vocabulary, padding=padding, start_id=start_id, origin=origin)
    config_json = _config_json(family, {**attributes, **_kept(family, config, origin)}, special, dtype)
    generation_json = _generation_json(
        config_json, family, config, vocabulary, origin.get("generation"), asked=generation
    )
    around = _around(family, vocabulary, bare_prompts=bare_prompts, ends_prompts=ends_prompts)
    tensors = [
        *_tensors(families.bindings(family, config), params),
        *_zeros(family.zeros(config)),
        *_constants(family.constants(config)),
    ]

    directory = Path(directory)
    check_directory(directory)
    texts = {"config.json": json.dumps(config_json, indent=2, sort_keys=True) + "\n"}
    if generation_json is not None:
        texts[generation_settings.FILE] = json.dumps(generation_json, indent=2, sort_keys=True) + "\n"
    with staging.replacing(directory, stale=_stale(directory, vocabulary)) as folder:
        written = files.write(folder, tensors, dtype=dtype, max_shard_bytes=max_shard_bytes)
        if vocabulary is not None:
            written += _write_tokenizer(folder, vocabulary, family, config, around=around, padding=padding)
        if sentence_embeddings is not None:
            written += vectors.write(folder, config=config, pooling=sentence_embeddings)
        texts["README.md"] = cards.render(
            card or cards.Card(name=directory.resolve().name),
            architecture=architecture,
            parameters=_count(params),
            dtype=dtype,
            has_tokenizer=vocabulary is not None,
            mask_token=_mask_token(folder) if vocabulary is not None else None,
            generate=_to_be_told(config, config_json, generation_json or {}),
            notes=[*_notes(config_json, vocabulary, family, config), *_tokenizer_notes(config, vocabulary, padding)],
        )
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
    return sorted([*written, *texts])


def _count(params: Mapping[str, Any]) -> int:
    return sum(math.prod(np.shape(leaf)) for leaf in traverse_util.flatten_dict(params, sep="/").values())


def _stale(directory: Path, vocabulary: vocabularies.Vocabulary | None) -> list[str]:
    """Patterns of the files of an earlier export that would not go with this one.

    Files of a tokenizer stay where no new ones are written: somebody may have put them there for lack of them.
    """
    stale = [*files.STALE, generation_settings.FILE, *vectors.FILES]
    if vocabulary is not None:
        return [*stale, *tokenizer.FILES]
    if old := [name for name in tokenizer.FILES if (directory / name).exists()]:
        log.warning("%s keeps %s: see that they are of this model's vocabulary", directory, ", ".join(old))
    return stale


def _check(config: Any, vocabulary: vocabularies.Vocabulary | None, dtype: str) -> None:
    """Refuses a type that is none, and a vocabulary of another model."""
    if dtype not in files.DTYPES:
        raise ValueError(f"dtype is {dtype!r}; possible are {', '.join(files.DTYPES)}")
    if vocabulary is not None and vocabulary.size > config.vocab_size:
        raise ValueError(
            f"the vocabulary has {vocabulary.size} ids but the embedding only {config.vocab_size} rows: "
            "this is not the vocabulary the model was trained with"
        )


def _tensors(bindings: Sequence[table.Binding], params: Mapping[str, Any]) -> list[files.Tensor]:
    """What to write, in an order in which every parameter is asked for without a pause."""
    leaves = traverse_util.flatten_dict(params, sep="/")
    expected = {slot.path for binding in bindings for slot in binding.slots}
    if set(leaves) != expected:
        raise ValueError(
            f"the parameters are not those of the config: missing {sorted(expected - set(leaves))}, "
            f"unknown {sorted(set(leaves) - expected)}"
        )
    held: dict[str, np.ndarray] = {}

    def get(binding: table.Binding) -> np.ndarray:
        for path in set(held) - {slot.path for slot in binding.slots}:
            del held[path]
        parts = []
        for slot in binding.slots:
            if slot.path not in held:
                held[slot.path] = np.asarray(leaves[slot.path])
            leaf = held[slot.path]
            parts.append(leaf if slot.index is None else leaf[slot.index])
        return binding.join(parts)

    return [
        files.Tensor(name, binding.shape, lambda binding=binding: get(binding))
        for binding in bindings
        for name in binding.written
    ]


def _kept(family: config_map.Family, config: Any, origin: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of the files it comes from that nothing in the model says."""
    names = config_map.KEPT | family.kept(config)
    return {name: value for name, value in origin.get("kept", {}).items() if name in names}


def _generation_json(
    config_json: Mapping[str, Any],
    family: config_map.Family,
    config: Any,
    vocabulary: vocabularies.Vocabulary | None,
    published: Mapping[str, Any] | None,
    *,
    asked: Mapping[str, Any] | None,
) -> dict[str, Any] | None:
    """The content of generation_config.json, None for models that do not generate.

    It has the settings that are asked for, else those of the files that the model comes from. A model of ours whose
    texts have a token before them (BART) writes that token first.
    """
    (architecture,) = config_json["architectures"]
    if not asked and not generation_settings.generates(architecture):
        return None
    settings = dict(asked or {})
    if asked is None and published is not None:
        settings = dict(published)
    elif isinstance(config, EncoderDecoderConfig) and "bos" in family.starts and vocabulary is not None:
        settings = {"forced_bos_token_id": vocabulary.bos_id, **settings}
    return generation_settings.content(
        config_json, architecture=architecture, settings=settings, version=TRANSFORMERS_VERSION
    )


def _around(
    family: config_map.Family,
    vocabulary: vocabularies.Vocabulary | None,
    *,
    bare_prompts: bool,
    ends_prompts: bool,
) -> dict[str, list[int]]:
    """The ids around texts, which the vocabulary's own class of transformers must write as well where it has one."""
    if vocabulary is None:
        return {}
    around = frames.around(family, vocabulary, start_id=None if bare_prompts else vocabulary.start_id)
    if ends_prompts and vocabulary.eos_id is not None:
        around["after"] = [vocabulary.eos_id]
    tokenizer.check_frame(vocabulary, **around)
    return around


def _zeros(shapes: Mapping[str, table.Shape]) -> list[files.Tensor]:
    return [files.Tensor(name, shape, lambda shape=shape: np.zeros(shape)) for name, shape in shapes.items()]


def _constants(arrays: Mapping[str, np.ndarray]) -> list[files.Tensor]:
    return [files.Tensor(name, array.shape, lambda array=array: array) for name, array in arrays.items()]


def check_directory(directory: Path) -> None:
    """Refuses to write over the config.json of a run, a checkpoint or a model of t2t, which could not be read again.

    Raises:
        ValueError: the directory holds one.
    """
    file = directory / "config.json"
    if file.is_file() and b'"model_type"' not in file.read_bytes():
        raise ValueError(
            f"{directory} holds something else than an export (see its config.json), which an export would destroy: "
            "choose another directory"
        )


def _config_json(
    family: config_map.Family, attributes: Mapping[str, Any], special: Mapping[str, Any], dtype: str
) -> dict[str, Any]:
    return {
        "model_type": family.model_type,
        "transformers_version": TRANSFORMERS_VERSION,
        "dtype": dtype,
        "torch_dtype": dtype,
        **special,
        **attributes,
    }


def _write_tokenizer(
    directory: Path,
    vocabulary: vocabularies.Vocabulary,
    family: config_map.Family,
    config: Any,
    *,
    around: Mapping[str, list[int]],
    padding: int | None,
) -> list[str]:
    position = config.embed.position
    reads_left = isinstance(config, DecoderConfig) and not isinstance(config.head, ClassificationHead)
    return tokenizer.write(
        directory,
        vocabulary,
        **around,
        padding=padding,
        input_names=family.input_names,
        max_length=None if position is None else position.max_positions,
        padding_side=family.padding_side or ("left" if reads_left else "right"),
    )


def _mask_token(directory: Path) -> str | None:
    return json.loads((directory / "tokenizer_config.json").read_text(encoding="utf-8")).get("mask_token")


def _tokenizer_notes(config: Any, vocabulary: vocabularies.Vocabulary | None, padding: int | None) -> list[str]:
    """What a user of its tokenizer has to know."""
    notes = []
    if isinstance(vocabulary, vocabularies.MosesVocabulary):
        notes.append("The tokenizer cuts words with sacremoses: `pip install sacremoses`.")
    finds_last = isinstance(config, DecoderConfig) and getattr(config.head, "task", None) == "sequence"
    if vocabulary is not None and finds_last and padding is None:
        notes.append(
            "The vocabulary has no token that can fill rows, by which transformers finds the last token of a text: "
            "give the model one text at a time."
        )
    return notes


def _is_cached(config_json: Mapping[str, Any]) -> bool:
    """Whether transformers' cache has room for the decoder: it is made for as many layers as the encoder has."""
    return config_json.get("num_decoder_layers", 0) <= config_json.get("num_layers", 0)


def _to_be_told(
    config: Any, config_json: Mapping[str, Any], generation_json: Mapping[str, Any]
) -> dict[str, Any] | None:
    """What `generate` has to be told: how long a text may be, where no setting says it, and to do without a cache.

    None for models of two streams, which predict single words: they do not write, though their class can.
    """
    if isinstance(config, EncoderConfig):
        return None
    says_length = {"max_new_tokens", "max_length"} & generation_json.keys()
    return ({} if says_length else {"max_new_tokens": 20}) | ({} if _is_cached(config_json) else {"use_cache": False})


def _notes(
    config_json: Mapping[str, Any],
    vocabulary: vocabularies.Vocabulary | None,
    family: config_map.Family,
    config: Any,
) -> list[str]:
    """What a user of the exported model has to know."""
    notes = [family.note] if family.note else []
    if unread := family.unread(config):
        notes.append(
            f"No class of transformers reads {', '.join(f'`{name}`' for name in unread)}, the head that the model was "
            "pretrained with; it says so when it opens the model. t2t reads them."
        )
    if not _is_cached(config_json):
        notes.append(
            "The decoder has more layers than the encoder: pass `use_cache=False` to `generate`, whose cache is made "
            "for as many layers as the encoder has."
        )
        log.warning("in transformers: %s", notes[-1])
    if vocabulary is not None and vocabulary.size < config_json["vocab_size"]:
        notes.append(
            f"The embedding has {config_json['vocab_size']} rows for {vocabulary.size} ids; the others are unused. Do "
            "not shrink it to the size of the tokenizer."
        )
    return notes
