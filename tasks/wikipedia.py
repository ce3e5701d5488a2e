"""The pretraining objectives on the English Wikipedia, the articles of 1 June 2023 without markup, from TFDS.

    wikipedia_span_corruption   wikipedia_mlm   wikipedia_causal_lm   wikipedia_prefix_lm
    wikipedia_permutation_lm    wikipedia_permutation_lm_forward, _backward and _bidirectional for a model with a memory
    wikipedia_mlm_nsp           and the other formats of t2t.data.pair_objectives

TFDS has one split; its last hundredth is the validation split here. Registering needs no network;
TFDS downloads the prepared articles when they are first read.
"""

from t2t.data import pair_objectives, permutation_objectives, registry  # isort: skip - sets up TensorFlow
import seqio

ARTICLES = seqio.TfdsDataSource(
    "wikipedia/20230601.en:1.0.0", splits={"train": "train[:99%]", "validation": "train[99%:]"}
)

registry.add_objectives("wikipedia", ARTICLES)
permutation_objectives.add_permutation_lm("wikipedia", ARTICLES)
pair_objectives.add_pair_objectives("wikipedia", ARTICLES)
