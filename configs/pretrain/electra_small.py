"""ELECTRA-Small on Wikipedia: a generator replaces words and a discriminator of 14 million parameters finds them.

Reproduces: ELECTRA-Small's pretraining, on Wikipedia alone (the paper also read BooksCorpus, which is no
    longer public). The generator has a quarter of the width and shares the embeddings; 15 % of the tokens are chosen.
Paper: Clark et al., "ELECTRA: Pre-training Text Encoders as Discriminators Rather Than Generators", arXiv:2003.10555,
    section 3 and table 6; rates, batch and steps as in google-research/electra, configure_pretraining.py.
Data: wikipedia/20230601.en of TFDS (tasks/wikipedia.py) and BERT's vocab.txt. The articles and their segments are held
    in memory: some 80 GB.
Hardware and time: not run at full length yet; the paper's took 4 days on one V100.
Expected: 79.9 on GLUE (table 1).
Command: t2t train pretrain/electra_small --vocabulary PATH
"""

from t2t.config import Checkpoint, Data, Evaluate, Experiment, Train
from t2t.families import electra
from t2t.objectives.replaced_tokens import ReplacedTokenDetection
from t2t.train.optimizer import AdamW, Linear


def get_config() -> Experiment:
    """The paper's batch of 128 rows of 128 tokens for a million steps, with Adam as BERT's code has it."""
    return Experiment(
        name="electra_small",
        model=electra.pair(electra.PRESETS["electra-small"](), generator_size=1 / 4),
        vocabulary="vocabularies/bert-base-uncased",
        data=Data(
            modules=("tasks.wikipedia",),
            train="wikipedia_electra",
            lengths={"inputs": 128, "targets": 128, "predictions": 19},
            batch_size=128,
        ),
        objective=ReplacedTokenDetection(),
        optimizer=AdamW(
            learning_rate=Linear(peak=5e-4, warmup_steps=10_000),
            eps=1e-6,
            bias_correction=False,
            weight_decay=0.01,
            clip_norm=1.0,
        ),
        train=Train(steps=1_000_000, log_every=100),
        evaluate=Evaluate(tasks=("wikipedia_electra",), every=10_000, max_examples=4096),
        checkpoint=Checkpoint(every=5_000, keep=3),
        topology="v5e:2x2",
    )
