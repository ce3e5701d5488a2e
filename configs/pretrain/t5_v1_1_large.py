"""T5 1.1 large on C4: 783 million parameters.

Reproduces: the pretraining of T5 1.1 large, a million steps of 2048 rows.
Paper: Shazeer, "GLU Variants Improve Transformer", arXiv:2002.05202, and released_checkpoints.md of
    google-research/text-to-text-transfer-transformer; batch and steps of the public checkpoints.
Data: c4/en prepared by TFDS (tasks/c4.py) and T5's SentencePiece vocabulary.
    All of C4 takes 650 GB of memory on each host, a hundredth 6.5 GB (tasks/c4.py).
Hardware and time: not run at full length yet; its step compiles for v5e:16x16 and fits
    (t2t plan pretrain/t5_v1_1_large). A trillion tokens of inputs at 4.7e9 operations each are
    4.7e21: three to four days on 256 chips at a third of their peak.
Expected: no published loss; below that of the next smaller size (pretrain/t5_v1_1_small: about 2).
Command: t2t train pretrain/t5_v1_1_large --vocabulary PATH
"""

from configs.pretrain import t5_v1_1_small
from t2t.config import Experiment


def get_config() -> Experiment:
    """The run of T5 1.1 small in this size."""
    return t5_v1_1_small.of_size(size="large", topology="v5e:16x16", micro_batches=4)
