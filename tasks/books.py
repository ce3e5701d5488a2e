"""The pretraining objectives on books: PG-19, 28,752 books of Project Gutenberg from before 1919, from TFDS.

    books_span_corruption   books_mlm   books_causal_lm   books_prefix_lm
    books_permutation_lm    books_permutation_lm_forward, _backward and _bidirectional for a model with a memory
    books_mlm_nsp           and the other formats of t2t.data.pair_objectives
    books_mlm_span          and the other masks of t2t.data.masked_objectives
    books_bart              and the other noises of t2t.data.denoising_objectives

    wikipedia_books_mlm_nsp and all others: the mixture with tasks/wikipedia.py, proportional to their examples

BooksCorpus, from which BERT, GPT and T5's relatives learned, is no longer distributed; PG-19 takes its place. Splits
are train, validation and test. Other books, one file each: `--data.files 'books/*.txt' --data.unit file`.

Registering needs no network; TFDS downloads 11 GB when they are first read.

Reference: Rae et al., "Compressive Transformers for Long-Range Sequence Modelling", arXiv:1911.05507; mixed with
Wikipedia as in Devlin et al., "BERT", arXiv:1810.04805, section 3.1.
"""

import importlib

from t2t.data import registry  # isort: skip - sets up TensorFlow
import seqio

from t2t.data import denoising_objectives, masked_objectives, mixing, pair_objectives, permutation_objectives

importlib.import_module("tasks.wikipedia")

BOOKS = seqio.TfdsDataSource("pg19:0.1.1", splits=("train", "validation", "test"))
FIELD = "book_text"

_names = [
    *registry.add_objectives("books", BOOKS, field=FIELD),
    *masked_objectives.add_masked_objectives("books", BOOKS, field=FIELD),
    *denoising_objectives.add_bart_objectives("books", BOOKS, field=FIELD),
    *permutation_objectives.add_permutation_lm("books", BOOKS, field=FIELD),
    *pair_objectives.add_pair_objectives("books", BOOKS, field=FIELD, wrapped=True),
]
for _name in _names:
    if _name in seqio.TaskRegistry.names():
        registry.add_mixture(
            f"wikipedia_{_name}",
            {
                f"wikipedia_{_name.removeprefix('books_')}": mixing.ExampleCount(),
                _name: mixing.ExampleCount(),
            },
        )
