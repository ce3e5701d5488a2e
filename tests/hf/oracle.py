"""Tiny random models of transformers and their outputs, against which import and export are compared."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

LENGTH, DECODER_LENGTH, ROWS = 29, 23, 3
"""Longer than the exact buckets and the maximal distance of the tiny T5s below."""


@dataclasses.dataclass(frozen=True)
class Case:
    """A class of transformers and its config; every size differs from every other."""

    name: str
    architecture: str
    config: dict[str, Any]

    def __str__(self) -> str:
        return self.name


T5 = {
    "vocab_size": 53,
    "d_model": 20,
    "d_kv": 6,
    "d_ff": 28,
    "num_heads": 4,
    "num_layers": 2,
    "num_decoder_layers": 3,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 20,
    "decoder_start_token_id": 0,
}
BERT = {
    "vocab_size": 53,
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 28,
    "max_position_embeddings": 40,
    "type_vocab_size": 2,
}
GPT2 = {
    "vocab_size": 53,
    "n_embd": 20,
    "n_layer": 3,
    "n_head": 4,
    "n_positions": 40,
    "bos_token_id": 1,
    "eos_token_id": 1,
}
GPT = {"vocab_size": 53, "n_embd": 20, "n_layer": 3, "n_head": 4, "n_positions": 40}

CASES = (
    Case("t5-1.0", "T5ForConditionalGeneration", T5),
    Case("t5-1.0-deep", "T5ForConditionalGeneration", {**T5, "num_layers": 4, "num_decoder_layers": 1, "num_heads": 3,
         "relative_attention_num_buckets": 32, "relative_attention_max_distance": 128}),
    Case("t5-1.1", "T5ForConditionalGeneration", {**T5, "feed_forward_proj": "gated-gelu",
         "tie_word_embeddings": False}),
    Case("t5-swiglu", "T5ForConditionalGeneration", {**T5, "feed_forward_proj": "gated-silu",
         "layer_norm_epsilon": 1e-5, "tie_word_embeddings": False, "num_decoder_layers": 2, "num_layers": 1}),
    Case("bert", "BertModel", BERT),
    Case("bert-types", "BertModel", {**BERT, "type_vocab_size": 5, "num_attention_heads": 2, "layer_norm_eps": 1e-6,
         "hidden_act": "gelu_new", "num_hidden_layers": 1}),
    Case("bert-mlm", "BertForMaskedLM", BERT),
    Case("bert-mlm-untied", "BertForMaskedLM", {**BERT, "tie_word_embeddings": False, "hidden_act": "relu"}),
    Case("bert-pretraining", "BertForPreTraining", {**BERT, "num_hidden_layers": 2}),
    Case("gpt2", "GPT2LMHeadModel", GPT2),
    Case("gpt2-inner", "GPT2LMHeadModel", {**GPT2, "n_inner": 28, "activation_function": "relu",
         "layer_norm_epsilon": 1e-6, "n_layer": 1, "n_head": 5}),
    Case("gpt2-untied", "GPT2LMHeadModel", {**GPT2, "tie_word_embeddings": False}),
    Case("gpt", "OpenAIGPTLMHeadModel", GPT),
    Case("gpt-relu", "OpenAIGPTLMHeadModel", {**GPT, "afn": "relu", "n_layer": 2, "n_head": 2}),
)  # fmt: skip


def build(case: Case) -> Any:
    """A model of transformers whose every parameter is random: biases, norm weights and the own output of an untied T5.

    Attention is eager; the model does not drop out.
    """
    import torch
    import transformers

    architecture = getattr(transformers, case.architecture)
    config = architecture.config_class(**case.config)
    config._attn_implementation = "eager"
    model = architecture(config).eval()
    if case.config.get("tie_word_embeddings") is False and case.architecture.startswith("T5"):
        model.lm_head.weight = torch.nn.Parameter(torch.empty(config.vocab_size, config.d_model))
    generator = torch.Generator().manual_seed(sum(map(ord, case.name)))
    for name, parameter in model.named_parameters():
        centre = 1.0 if parameter.ndim == 1 and name.endswith("weight") else 0.0
        parameter.data = centre + 0.3 * torch.randn(parameter.shape, generator=generator)
    return model


def save(model: Any, directory: Path) -> Path:
    """The directory transformers itself writes of a model."""
    model.save_pretrained(directory)
    return directory


def batch(case: Case, *, padded: bool) -> dict[str, np.ndarray]:
    """Random input by t2t's keys: rows of different lengths, and sentence types where the model has them."""
    rng = np.random.default_rng(7)
    vocab = case.config["vocab_size"]

    def side(name: str, length: int, shortest: int) -> dict[str, np.ndarray]:
        lengths = [length, shortest, length - 3] if padded else [length] * ROWS
        segments = (np.arange(length)[None] < np.array(lengths)[:, None]).astype(np.int32)
        tokens = rng.integers(2, vocab, (ROWS, length)).astype(np.int32) * segments
        return {f"{name}_input_tokens": tokens, f"{name}_segment_ids": segments}

    if case.architecture.startswith("T5"):
        return side("encoder", LENGTH, 5) | side("decoder", DECODER_LENGTH, 1)
    if case.architecture.startswith("Bert"):
        types = rng.integers(0, case.config["type_vocab_size"], (ROWS, LENGTH)).astype(np.int32)
        return side("encoder", LENGTH, 1) | {"encoder_token_types": types}
    return side("decoder", LENGTH, 1)


def outputs(model: Any, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """What transformers computes, by the names of t2t's Output."""
    import torch

    given = {name: torch.tensor(array, dtype=torch.long) for name, array in arrays.items()}
    encoder_decoder = model.config.is_encoder_decoder
    side = "encoder" if "encoder_input_tokens" in given else "decoder"
    inputs = {"input_ids": given[f"{side}_input_tokens"], "attention_mask": given[f"{side}_segment_ids"]}
    if "encoder_token_types" in given:
        inputs["token_type_ids"] = given["encoder_token_types"]
    if encoder_decoder:
        inputs |= {
            "decoder_input_ids": given["decoder_input_tokens"],
            "decoder_attention_mask": given["decoder_segment_ids"],
        }
    with torch.no_grad():
        result = model(**inputs, output_hidden_states=True, return_dict=True)
    names = {
        "logits": ("logits", "prediction_logits"),
        "next_sentence_logits": ("seq_relationship_logits",),
        "pooled": ("pooler_output",),
        "hidden_states": ("decoder_hidden_states", "hidden_states"),
        "encoder_hidden_states": ("encoder_hidden_states",),
    }
    found = {}
    for ours, theirs in names.items():
        value = next((result[name] for name in theirs if result.get(name) is not None), None)
        if value is not None:
            found[ours] = [v.numpy() for v in value] if isinstance(value, tuple) else value.numpy()
    return found


def assert_equal(ours: Any, theirs: dict[str, Any], arrays: dict[str, np.ndarray], *, tolerance: float = 1e-4) -> None:
    """Every output of transformers equals ours where the input is no padding."""
    side = "decoder" if "decoder_segment_ids" in arrays else "encoder"
    for name, expected in theirs.items():
        found = getattr(ours, name)
        assert found is not None, name
        pairs = zip(found, expected, strict=True) if isinstance(expected, list) else [(found, expected)]
        real = arrays[f"{'encoder' if name == 'encoder_hidden_states' else side}_segment_ids"] != 0
        for mine, other in pairs:
            mine = np.asarray(mine)
            assert mine.shape == other.shape, name
            if mine.ndim == 3:
                mine, other = mine[real], other[real]
            np.testing.assert_allclose(mine, other, atol=tolerance, rtol=tolerance, err_msg=name)
