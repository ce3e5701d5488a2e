"""Tokens that the input pipeline makes per CPU-second, one process, beside seqio's feature converter.

    python -m benchmarks.input_pipeline [--seconds 5] [--output FILE]

Work: text-to-text examples of 5-40 and 2-20 tokens packed into rows of 512 and 256 (t2t and seqio, the same examples);
then t2t alone with its corruptions: span corruption 512/114, masked language modelling at 128, causal language
modelling at 1024. Tokens are random and in memory: reading and tokenising are not counted. CPU time is that of all
threads.
"""

import argparse
import dataclasses
import json
import pathlib
import time
from collections.abc import Iterator

import numpy as np

from t2t.data import features, pipeline, preprocessors, registry, vocabularies
from t2t.data.corruption_base import Corruption
from t2t.data.examples import TaskExamples
from t2t.data.host_tensorflow import tf
from t2t.data.store import TokenStore
from t2t.vocabulary import ByteVocabulary

VOCABULARY = ByteVocabulary()
SHORT = {"inputs": 512, "targets": 256}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="CPU-seconds for each line")
    parser.add_argument("--output", type=pathlib.Path, help="JSON file to write")
    arguments = parser.parse_args()
    encoder_decoder = {"lengths": SHORT, "start_id": 0}
    spans = {"lengths": {"inputs": 512, "targets": 114}, "start_id": 0}
    masked = features.EncoderFeatures(lengths={"inputs": 128, "targets": 128})
    work = {
        "text-to-text 512/256, t2t": ours(features.EncoderDecoderFeatures(**encoder_decoder), None),
        "text-to-text 512/256, seqio": seqios(),
        "span corruption 512/114": ours(features.EncoderDecoderFeatures(**spans), preprocessors.SpanCorruption()),
        "masked 128": ours(masked, preprocessors.MaskedTokens()),
        "masked 128, 24 predictions": ours(dataclasses.replace(masked, predictions=24), preprocessors.MaskedTokens()),
        "causal 1024": ours(features.DecoderFeatures(lengths={"targets": 1024}, start_id=0), preprocessors.CausalLM()),
    }
    results = {}
    print(f"{'':30}{'tokens per CPU-s':>18}{'filled':>9}")
    for name, batches in work.items():
        results[name] = measure(batches, arguments.seconds)
        print(f"{name:30}{results[name]['tokens_per_cpu_second']:18,.0f}{results[name]['filled']:9.1%}", flush=True)
    if arguments.output:
        arguments.output.write_text(json.dumps(results, indent=2) + "\n")


def measure(batches: Iterator, seconds: float) -> dict[str, float]:
    """Tokens per CPU-second, after a first batch that is not counted, and the part of all positions that they fill."""
    next(batches)
    start, tokens, positions = time.process_time(), 0, 0
    while time.process_time() - start < seconds:
        ids = [values for name, values in next(batches).items() if name.endswith("segment_ids")]
        tokens += sum(int(np.count_nonzero(values)) for values in ids)
        positions += sum(values.size for values in ids)
    return {"tokens_per_cpu_second": tokens / (time.process_time() - start), "filled": tokens / positions}


def ours(converter: features.Converter, objective: Corruption | None, *, rows: int = 64) -> pipeline.TrainPipeline:
    """Our batches of random examples."""
    rng = np.random.default_rng(0)
    bound = None
    if objective is None:
        examples = short_examples()
    else:
        feature = dataclasses.replace(registry.feature(), vocabulary=vocabularies.SeqioVocabulary(VOCABULARY))
        bound = objective.bind(converter.lengths, dict.fromkeys(objective.makes, feature))
        text = rng.integers(3, 259, (2000, bound.raw_length), dtype=np.int32)
        examples = [{objective.feature: tokens} for tokens in text]
    task = TaskExamples(name="random", split="train", store=TokenStore.collect(examples), corruption=bound, seed=0)
    return pipeline.TrainPipeline(pipeline.Stream.of([task], [1.0], converter, seed=0), rows=rows)


def seqios() -> Iterator:
    """Packed rows of the same text-to-text examples by seqio, one at a time as it makes them."""
    import seqio

    examples = short_examples()
    signature = {name: tf.TensorSpec([None], tf.int32) for name in SHORT}
    dataset = tf.data.Dataset.from_generator(lambda: iter(examples), output_signature=signature).repeat()
    return seqio.EncDecFeatureConverter(pack=True)(dataset, SHORT).as_numpy_iterator()


def short_examples(number: int = 6000) -> list[dict[str, np.ndarray]]:
    """Random inputs of 5 to 40 tokens and targets of 2 to 20."""
    rng = np.random.default_rng(0)
    sizes = zip(rng.integers(5, 41, number), rng.integers(2, 21, number), strict=True)
    return [
        {name: rng.integers(3, 259, size, dtype=np.int32) for name, size in zip(SHORT, pair, strict=True)}
        for pair in sizes
    ]


if __name__ == "__main__":
    main()
