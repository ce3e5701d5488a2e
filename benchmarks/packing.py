"""How full the rows of a batch are: one example a row, packed in order, by first fit, and by a run with open rows.

    python -m benchmarks.packing [--files 'books/*.txt'] [--unit paragraph] [--vocabulary PATH] [--output FILE]

Without files the text is the embedded corpus. Documents are paragraphs, lines or whole files; the vocabulary is trained
on the text, 8,000 pieces, unless one is given. Objectives that join documents cut them to lengths that fill rows, so
they need no packing; the others keep documents or sentences apart, and their examples differ in length. "First fit" is
over all examples at once; "32 open" is what `--data.open-rows 32` gives a run of 8 rows.
"""

import argparse
import json
import pathlib
from collections.abc import Iterator

import numpy as np

from t2t.data import corpora, examples, features, file_source, packing, pair_objectives, pipeline, pydocs, registry
from t2t.data import denoising_objectives as denoising
from t2t.vocabulary import Vocabulary, train_sentencepiece

BOTH = {"inputs": 512, "targets": 512}
EXAMPLES = 20_000
ROWS, OPEN_ROWS, BATCHES = 8, 32, 100

TASKS = {
    "span corruption 512/114": ("corpus_span_corruption", {"inputs": 512, "targets": 114}),
    "causal 512": ("corpus_causal_lm", {"targets": 512}),
    "documents, BART 512/512": ("corpus_bart", BOTH),
    "next sentence 512": ("corpus_segment_pairs", BOTH),
    "sentence pairs 512": ("corpus_sentence_pairs", BOTH),
    "full sentences 512": ("corpus_full_sentences", BOTH),
    "doc sentences 512": ("corpus_doc_sentences", BOTH),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", nargs="+", help="text files; none takes the embedded corpus")
    parser.add_argument("--unit", choices=("paragraph", "line", "file"), default="paragraph")
    parser.add_argument("--vocabulary", help="directory or file of a vocabulary; none trains one on the text")
    parser.add_argument("--output", type=pathlib.Path, help="JSON file to write")
    arguments = parser.parse_args()
    register(arguments.files, arguments.unit)
    vocabulary = load_vocabulary(arguments.vocabulary, arguments.files)
    columns = ("single", "in_order", "first_fit", "32_open")
    print(f"{'':26}{'examples':>10}{'tokens':>8}" + "".join(f"{name.replace('_', ' '):>11}" for name in columns))
    results = {}
    for name, (task, lengths) in TASKS.items():
        found = results[name] = measure(task, lengths, vocabulary)
        shares = "".join(f"{found[column]:11.1%}" for column in columns)
        print(f"{name:26}{found['examples']:10,}{found['tokens']:8.1f}{shares}", flush=True)
    if arguments.output:
        arguments.output.write_text(json.dumps(results, indent=2) + "\n")


def register(files: list[str] | None, unit: str) -> None:
    """The objectives on the corpus."""
    if files:
        source = file_source.FileSource({"train": files}, unit=unit)
    else:
        source = registry.TextSource(lambda split: [{"text": text} for text in embedded()], splits=("train",))
    registry.add_objectives("corpus", source)
    denoising.add_bart_objectives("corpus", source)
    pair_objectives.add_pair_objectives("corpus", source, wrapped=True)


def embedded() -> Iterator[str]:
    return (document.text for document in pydocs.split_documents("train"))


def load_vocabulary(path: str | None, files: list[str] | None) -> Vocabulary:
    if path:
        return Vocabulary.load(path)
    texts = corpora.read_texts(files) if files else embedded()
    lines = (line for text in texts for line in text.splitlines())
    return train_sentencepiece(lines, size=8000, sentinels=100, mask=True)


def measure(task: str, lengths: dict[str, int], vocabulary: Vocabulary) -> dict[str, float]:
    """The number of examples, their tokens, and how full rows are, by way of packing."""
    if "inputs" not in lengths:
        converter: features.Converter = features.DecoderFeatures(lengths=lengths, start_id=0)
    elif task.endswith(("span_corruption", "bart")):
        converter = features.EncoderDecoderFeatures(lengths=lengths, start_id=0)
    else:
        converter = features.EncoderFeatures(lengths=lengths)
    made = examples.load_examples(task, "train", vocabulary=vocabulary, lengths=lengths, seed=0)
    chosen = np.random.default_rng(0).permutation(len(made))[:EXAMPLES]
    read = made.examples(chosen.tolist(), epoch=0)
    sizes = np.array([converter.sizes(converter.trim(example)[0]) for example in read])
    capacity = converter.capacity
    return {
        "examples": len(made),
        "tokens": float(sizes.sum() / len(sizes)),
        "single": float(sizes.sum() / (len(sizes) * sum(capacity))),
        "in_order": packing.filled(sizes, packing.first_fit(sizes, capacity, open_rows=1), capacity),
        "first_fit": packing.filled(sizes, packing.first_fit(sizes, capacity), capacity),
        "32_open": of_a_run(made, converter),
    }


def of_a_run(made: examples.TaskExamples, converter: features.Converter) -> float:
    """How full the batches of a run with open rows are, after its first ones."""
    stream = pipeline.Stream.of([made], [1.0], converter, seed=0)
    batches = pipeline.TrainPipeline(stream, rows=ROWS, open_rows=OPEN_ROWS)
    filled = []
    for number in range(2 * BATCHES):
        batch = next(batches)
        if number >= BATCHES:
            ids = [values for name, values in batch.items() if name.endswith("_segment_ids")]
            filled.append(sum(map(np.count_nonzero, ids)) / sum(values.size for values in ids))
    return float(np.mean(filled))


if __name__ == "__main__":
    main()
