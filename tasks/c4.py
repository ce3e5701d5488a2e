"""The pretraining objectives on C4, the Colossal Clean Crawled Corpus, English (750 GB of text), from TFDS.

    c4_span_corruption   c4_mlm   c4_causal_lm   c4_prefix_lm          splits train and validation

Examples are held in the memory of each host (4 bytes a token), and all of C4 is some 650 GB of them: a smaller host
registers a part, `seqio.TfdsDataSource("c4/en:3.1.0", splits={"train": "train[:1%]", "validation": "validation"})`.
Registering needs no network. The data must have been prepared once, by `tfds build c4/en` on a cluster (Apache Beam),
or stand in a bucket already: set TFDS_DATA_DIR. Version 2.2.0, which the T5 code names, is refused by today's TFDS.

Reference: Raffel et al., "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer",
arXiv:1910.10683, section 2.2.
"""

from t2t.data import public_sources, registry

registry.add_objectives("c4", public_sources.CountedTfds("c4/en:3.1.0", {"train": 364_868_892, "validation": 364_608}))
