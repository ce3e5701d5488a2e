"""The pretraining objectives on the One Billion Word benchmark: sentences of news in random order, from TFDS.

    lm1b_span_corruption   lm1b_mlm   lm1b_causal_lm   lm1b_prefix_lm

The sentences are tokenised already (spaces before punctuation) and stay so. The validation split is all that the
benchmark holds out, which TFDS calls test. Registering needs no network; TFDS downloads 1.8 GB when it is first read.

Reference: Chelba et al., "One Billion Word Benchmark for Measuring Progress in Statistical Language Modeling",
arXiv:1312.3005.
"""

from t2t.data import registry  # isort: skip - sets up TensorFlow
import seqio

registry.add_objectives(
    "lm1b", seqio.TfdsDataSource("lm1b:1.1.0", splits={"train": "train", "validation": "test", "test": "test"})
)
