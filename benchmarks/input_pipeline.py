"""Tokens that the input pipeline makes per CPU-second, one process, beside the code of seqio and t5.

    python -m benchmarks.input_pipeline [--seconds 5] [--only NAME ...] [--output FILE]

    packing       text-to-text examples of 5-40 and 2-20 tokens in rows of 512 and 256: the same examples for t2t, in
                  order and with 32 open rows, and for seqio's feature converter
    objectives    batches of t2t, corruption, packing and features included, beside what t5's preprocessors make of rows
                  of the same length (where the package t5 is installed), corruption alone
    tokenising    text of the embedded corpus, by t2t many documents at a time, by seqio's `encode_tf` one by one

Token arrays are random and in memory: reading is not counted. Tokens are those of finished inputs and targets without
padding. CPU time is that of all threads.
"""

import argparse
import dataclasses
import importlib.util
import json
import pathlib
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from t2t.data import denoising_objectives as denoising
from t2t.data import features, masked_objectives, pipeline, preprocessors, pydocs, registry, t5_grid, ul2, vocabularies
from t2t.data.corruption_base import Corruption
from t2t.data.examples import TaskExamples
from t2t.data.host_tensorflow import tf
from t2t.data.store import TokenStore
from t2t.vocabulary import ByteVocabulary, SentencePieceVocabulary, train_sentencepiece

VOCABULARY = ByteVocabulary(mask=True, sentinels=300, modes=True)
SHORT = {"inputs": 512, "targets": 256}
SPANS = {"inputs": 512, "targets": 114}
DENOISED = {"inputs": 512, "targets": 192}
LONG = {"inputs": 512, "targets": 512}
MASKED = {"inputs": 128, "targets": 128}

Batches = Iterator[Mapping[str, np.ndarray]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="CPU-seconds for each line")
    parser.add_argument("--only", nargs="+", default=[""], help="parts of the names of the lines to measure")
    parser.add_argument("--output", type=pathlib.Path, help="JSON file to write")
    arguments = parser.parse_args()
    results = {}
    print(f"{'':34}{'tokens per CPU-s':>18}{'filled':>9}")
    for name, open_batches in WORK.items():
        if any(part in name for part in arguments.only):
            found = results[name] = measure(open_batches(), arguments.seconds)
            print(f"{name:34}{found['tokens_per_cpu_second']:18,.0f}{found['filled']:9.1%}", flush=True)
    if not has_t5():
        print("t5 is not installed: its preprocessors are not measured.")
    if arguments.output:
        arguments.output.write_text(json.dumps(results, indent=2) + "\n")


def measure(batches: Batches, seconds: float) -> dict[str, float]:
    """Tokens per CPU-second, after a first batch that is not counted, and the part of all positions that they fill."""
    next(batches)
    start, tokens, positions = time.process_time(), 0, 0
    while time.process_time() - start < seconds:
        filled = [values for name, values in next(batches).items() if name.endswith("segment_ids")]
        tokens += sum(int(np.count_nonzero(values)) for values in filled)
        positions += sum(values.size for values in filled)
    return {"tokens_per_cpu_second": tokens / (time.process_time() - start), "filled": tokens / positions}


def ours(converter: features.Converter, objective: Corruption | None, *, rows: int = 64, open_rows: int = 1) -> Batches:
    """Our batches of random examples."""
    bound = None
    if objective is None:
        examples = short_examples()
    else:
        feature = dataclasses.replace(registry.feature(), vocabulary=vocabularies.SeqioVocabulary(VOCABULARY))
        bound = objective.bind(converter.lengths, dict.fromkeys(objective.makes, feature))
        examples = [{objective.feature: tokens} for tokens in random_rows(bound.raw_length)]
    task = TaskExamples(name="random", split="train", store=TokenStore.collect(examples), corruption=bound, seed=0)
    stream = pipeline.Stream.of([task], [1.0], converter, seed=0)
    return pipeline.TrainPipeline(stream, rows=rows, open_rows=open_rows)


def random_rows(length: int, number: int = 2000) -> np.ndarray:
    """Texts of so many ordinary tokens."""
    return np.random.default_rng(0).integers(3, 259, (number, length), dtype=np.int32)


def short_examples(number: int = 6000) -> list[dict[str, np.ndarray]]:
    """Random inputs of 5 to 40 tokens and targets of 2 to 20."""
    rng = np.random.default_rng(0)
    sizes = zip(rng.integers(5, 41, number), rng.integers(2, 21, number), strict=True)
    return [
        {name: rng.integers(3, 259, size, dtype=np.int32) for name, size in zip(SHORT, pair, strict=True)}
        for pair in sizes
    ]


def encoder_decoder(lengths: Mapping[str, int]) -> features.EncoderDecoderFeatures:
    return features.EncoderDecoderFeatures(lengths=lengths, start_id=0)


def masked(**settings: int) -> features.EncoderFeatures:
    return features.EncoderFeatures(lengths=MASKED, **settings)


def packed_by_seqio() -> Batches:
    """Packed rows of the same text-to-text examples by seqio, one at a time as it makes them."""
    import seqio

    examples = short_examples()
    signature = {name: tf.TensorSpec([None], tf.int32) for name in SHORT}
    dataset = tf.data.Dataset.from_generator(lambda: iter(examples), output_signature=signature).repeat()
    return seqio.EncDecFeatureConverter(pack=True)(dataset, SHORT).as_numpy_iterator()


def has_t5() -> bool:
    return importlib.util.find_spec("t5") is not None


def of_t5(name: str, lengths: Mapping[str, int], raw_length: int) -> Batches:
    """Examples by a preprocessor of t5, of rows of raw tokens that fill the lengths; it neither packs nor pads."""
    import seqio
    from t5.data import preprocessors as t5_preprocessors

    vocabulary = seqio.ByteVocabulary(extra_ids=300)
    output_features = {feature: seqio.Feature(vocabulary) for feature in lengths}
    dataset = tf.data.Dataset.from_tensor_slices({"targets": random_rows(raw_length)}).repeat()
    with seqio.map_seed_manager(0):
        dataset = getattr(t5_preprocessors, name)(dataset, lengths, output_features)
    for example in dataset.as_numpy_iterator():
        yield {f"{feature}_segment_ids": np.ones_like(example[feature]) for feature in lengths}


def tokenised(*, by_seqio: bool) -> Batches:
    """The embedded corpus through a SentencePiece model of 8,000 pieces that was trained on it."""
    texts = [document.text for document in pydocs.split_documents("train")]
    ours = train_sentencepiece((line for text in texts for line in text.splitlines()), size=8000)
    if by_seqio:
        return tokenised_by_seqio(texts, ours)
    return ({"segment_ids": np.ones(sum(map(len, ours.encode_batch(texts))))} for _ in iter(int, 1))


def tokenised_by_seqio(texts: list[str], ours: SentencePieceVocabulary) -> Batches:
    import seqio

    with tempfile.TemporaryDirectory() as directory:
        ours.save(directory)
        (model,) = pathlib.Path(directory).glob("*.model")
        vocabulary = seqio.SentencePieceVocabulary(str(model))
        dataset = tf.data.Dataset.from_tensor_slices(texts).repeat().map(vocabulary.encode_tf)
        for tokens in dataset.as_numpy_iterator():
            yield {"segment_ids": np.ones(len(tokens))}


WORK: dict[str, Callable[[], Batches]] = {
    "packing 512/256, t2t": lambda: ours(encoder_decoder(SHORT), None),
    "packing 512/256, t2t, 32 open": lambda: ours(encoder_decoder(SHORT), None, open_rows=32),
    "packing 512/256, seqio": packed_by_seqio,
    "span corruption 512/114, t2t": lambda: ours(encoder_decoder(SPANS), preprocessors.SpanCorruption()),
    "i.i.d. denoising 512/192, t2t": lambda: ours(encoder_decoder(DENOISED), t5_grid.t5_objective("iid_15_u_u")),
    "prefix LM 512/512, t2t": lambda: ours(encoder_decoder(LONG), preprocessors.PrefixLM()),
    "masked 128, t2t": lambda: ours(masked(), preprocessors.MaskedTokens()),
    "masked 128, 24 places, t2t": lambda: ours(masked(predictions=24), preprocessors.MaskedTokens()),
    "masked words 128, t2t": lambda: ours(masked(), masked_objectives.WHOLE_WORDS),
    "causal 1024, t2t": lambda: ours(
        features.DecoderFeatures(lengths={"targets": 1024}, start_id=0), preprocessors.CausalLM()
    ),
    "BART 512/512, t2t": lambda: ours(encoder_decoder(LONG), denoising.PAPER),
    "UL2 x3_50 512/512, t2t": lambda: ours(encoder_decoder(LONG), ul2.denoisers()["x3_50"]),
    "tokenising, t2t": lambda: tokenised(by_seqio=False),
    "tokenising, seqio": lambda: tokenised(by_seqio=True),
}
if has_t5():
    WORK |= {
        "span corruption 512/114, t5": lambda: of_t5("span_corruption", SPANS, 568),
        "i.i.d. denoising 512/192, t5": lambda: of_t5("iid_denoising", DENOISED, 512),
        "prefix LM 512/512, t5": lambda: of_t5("prefix_lm", LONG, 512),
    }


if __name__ == "__main__":
    main()
