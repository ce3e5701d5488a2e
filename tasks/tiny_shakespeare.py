"""The pretraining objectives on a million characters of Shakespeare's plays, from TFDS: for trying things out.

    tiny_shakespeare_span_corruption   tiny_shakespeare_mlm   tiny_shakespeare_causal_lm   tiny_shakespeare_prefix_lm

Splits are train (90 %), validation and test, one text each. With the vocabulary of bytes it is the character model
that everybody trains first. Registering needs no network; TFDS downloads the text when it is first read.
"""

from t2t.data import registry  # isort: skip - sets up TensorFlow
import seqio

registry.add_objectives(
    "tiny_shakespeare", seqio.TfdsDataSource("tiny_shakespeare:1.0.0", splits=("train", "validation", "test"))
)
