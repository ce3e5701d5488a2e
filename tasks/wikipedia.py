"""The pretraining objectives on the English Wikipedia, the articles of 1 June 2023 without markup, from TFDS.

    wikipedia_span_corruption   wikipedia_mlm   wikipedia_causal_lm   wikipedia_prefix_lm

TFDS has one split; its last hundredth is the validation split here. Registering needs no network;
TFDS downloads the prepared articles when they are first read.
"""

from t2t.data import registry  # isort: skip - sets up TensorFlow
import seqio

registry.add_objectives(
    "wikipedia",
    seqio.TfdsDataSource("wikipedia/20230601.en:1.0.0", splits={"train": "train[:99%]", "validation": "train[99%:]"}),
)
