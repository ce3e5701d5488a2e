"""The pretraining objectives on the English Wikipedia, the articles of 1 June 2023 without markup, from TFDS.

    wikipedia_span_corruption   wikipedia_mlm   wikipedia_causal_lm   wikipedia_prefix_lm
    wikipedia_permutation_lm    wikipedia_permutation_lm_forward, _backward and _bidirectional for a model with a memory
    wikipedia_mlm_nsp           and the other formats of t2t.data.pair_objectives
    wikipedia_mlm_span          and the other masks of t2t.data.masked_objectives
    wikipedia_bart              and the other noises of t2t.data.denoising_objectives

TFDS has one split; its last hundredth is the validation split here. Registering needs no network;
TFDS downloads the prepared articles when they are first read.
"""

from t2t.data import registry  # isort: skip - sets up TensorFlow
import seqio

from t2t.data import denoising_objectives, masked_objectives, pair_objectives, permutation_objectives

ARTICLES = seqio.TfdsDataSource(
    "wikipedia/20230601.en:1.0.0", splits={"train": "train[:99%]", "validation": "train[99%:]"}
)

registry.add_objectives("wikipedia", ARTICLES)
masked_objectives.add_masked_objectives("wikipedia", ARTICLES)
denoising_objectives.add_bart_objectives("wikipedia", ARTICLES)
permutation_objectives.add_permutation_lm("wikipedia", ARTICLES)
pair_objectives.add_pair_objectives("wikipedia", ARTICLES)
