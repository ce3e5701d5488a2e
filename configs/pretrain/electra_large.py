"""ELECTRA-Large on Wikipedia: a generator replaces words and a discriminator of 335 million parameters finds them.

Reproduces: ELECTRA-Large's pretraining, on Wikipedia alone (the paper read XLNet's corpus, ten times as
    large). The generator has a quarter of the width and shares the embeddings; 25 % of the tokens are chosen.
Paper: Clark et al., "ELECTRA: Pre-training Text Encoders as Discriminators Rather Than Generators", arXiv:2003.10555,
    section 3 and table 6; rates, batch and steps as in google-research/electra, configure_pretraining.py.
Data: wikipedia/20230601.en of TFDS (tasks/wikipedia.py) and BERT's vocab.txt. The articles and their segments are held
    in memory: some 80 GB.
Hardware and time: not run at full length yet; 400,000 steps are a fifth of the work of RoBERTa.
Expected: 89.0 on the development sets of GLUE after 400,000 steps (table 2).
Command: t2t train pretrain/electra_large --vocabulary PATH
"""

from t2t.config import Checkpoint, Data, Evaluate, Experiment, Train
from t2t.families import electra
from t2t.objectives.replaced_tokens import ReplacedTokenDetection
from t2t.train.optimizer import AdamW, Linear


def get_config() -> Experiment:
    """The paper's batch of 2048 rows of 512 tokens for 400,000 steps, with Adam as BERT's code has it."""
    return Experiment(
        name="electra_large",
        model=electra.pair(electra.PRESETS["electra-large"](), generator_size=1 / 4),
        vocabulary="vocabularies/bert-base-uncased",
        data=Data(
            modules=("tasks.wikipedia",),
            train="wikipedia_electra_quarter",
            lengths={"inputs": 512, "targets": 512, "predictions": 128},
            batch_size=2048,
        ),
        objective=ReplacedTokenDetection(),
        optimizer=AdamW(
            learning_rate=Linear(peak=2e-4, warmup_steps=10_000),
            eps=1e-6,
            bias_correction=False,
            weight_decay=0.01,
            clip_norm=1.0,
        ),
        train=Train(steps=400_000, log_every=100, micro_batches=4),
        evaluate=Evaluate(tasks=("wikipedia_electra_quarter",), every=10_000, max_examples=4096),
        checkpoint=Checkpoint(every=5_000, keep=3),
        topology="v4:4x4x4",
    )
