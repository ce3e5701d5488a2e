"""UL2 at base size on C4: 248 million parameters, a mixture of seven denoisers under three modes.

Reproduces: the encoder-decoder of UL2's comparisons, 500,000 steps of 128 rows of 512 inputs and 512 targets, in the
    shape of T5 1.1 base with SiLU gates (the paper's has 335 million parameters and does not state its shape). All
    denoisers are equally likely; c4_ul2_40_40_20 in place of c4_ul2 is the other published mixture.
Paper: Tay et al., "UL2: Unifying Language Learning Paradigms", arXiv:2205.05131, sections 3.1 and 4.
Data: c4/en prepared by TFDS (tasks/c4.py, tasks/c4_ul2.py). The run trains its vocabulary on the same text: 32,384
    ids, of which 300 are sentinels and three are modes. The extreme denoiser with spans of 3 needs 128 sentinels at 512
    inputs and 256 at 1,024; T5's vocabulary has 100. Every denoiser keeps its own cut of the text in memory, seven
    times what tasks/c4.py says: register a part of C4 for smaller hosts.
Hardware and time: not run at full length yet. 66 billion tokens of both sides at some 7e8 floating-point operations
    each are 4.6e19: some three days on 8 TPU v3 cores at a third of their peak.
Expected: no reference; losses differ between denoisers, highest where half of the text is hidden, and each is reported
    under the name of its task.
Command: t2t train pretrain/ul2_base
"""

from t2t.config import Checkpoint, Data, Evaluate, Experiment, Train
from t2t.families import t5
from t2t.objectives.language_modeling import LanguageModeling
from t2t.train.optimizer import Adafactor, InverseSquareRoot

VOCABULARY_SIZE = 253 * 128
"""About as many pieces as T5's, and the special tokens; a multiple of 128 fits the hardware."""


def get_config() -> Experiment:
    """UL2's mixture, batch and schedule on T5 1.1 base with SiLU."""
    return Experiment(
        name="ul2_base",
        model=t5.t5(
            num_layers=12,
            d_model=768,
            num_heads=12,
            d_ff=2048,
            activation="silu",
            gated=True,
            tied=False,
            dropout=0.0,
            vocab_size=VOCABULARY_SIZE,
        ),
        vocabulary_size=VOCABULARY_SIZE,
        vocabulary_sentinels=300,
        data=Data(
            modules=("tasks.c4", "tasks.c4_ul2"),
            train="c4_ul2",
            lengths={"inputs": 512, "targets": 512},
            batch_size=128,
        ),
        objective=LanguageModeling(z_loss=1e-4),
        optimizer=Adafactor(learning_rate=InverseSquareRoot()),
        train=Train(steps=500_000, log_every=100),
        evaluate=Evaluate(
            tasks=("c4_ul2_r3_15", "c4_ul2_x3_50", "c4_ul2_x64_15", "c4_ul2_s25"), every=10_000, max_examples=1024
        ),
        checkpoint=Checkpoint(every=5_000, keep=3),
        topology="v5e:4x4",
    )
