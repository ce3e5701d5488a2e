"""ALBERT-base v2 on Wikipedia: 12 million parameters, one layer used twelve times, n-grams masked, segments in order.

Reproduces: ALBERT's pretraining, masked n-grams of up to three words and the order of two segments, without dropout as
    version 2, on Wikipedia alone (BooksCorpus is no longer public).
Paper: Lan et al., "ALBERT: A Lite BERT for Self-supervised Learning of Language Representations", arXiv:1909.11942,
    section 4.1: LAMB with a rate of 0.00176 for 125,000 steps of 4096 rows; warm-up, decay and clipping as in
    run_pretraining.py and optimization.py of google-research/albert. One in ten pairs is shorter, as there.
Data: wikipedia/20230601.en of TFDS (tasks/wikipedia.py) and ALBERT's 30k-clean.model. The articles and their pairs are
    held in memory: some 80 GB.
Hardware and time: not run at full length yet; a step costs about as much as BERT-base's of as many rows. The paper used
    64 to 512 TPU v3 chips.
Expected: the authors give scores of the fine-tuned model alone (version 2: SQuAD 1.1 F1 90.2, MNLI 84.6).
Command: t2t train pretrain/albert_base_v2 --vocabulary PATH
"""

from t2t import heads
from t2t.config import Checkpoint, Data, Evaluate, Experiment, Train
from t2t.families import albert
from t2t.objectives.sentence_pairs import SentencePairModeling
from t2t.train.optimizer import LAMB, Linear


def get_config() -> Experiment:
    """The paper's batch of 4096 pairs for 125,000 steps, with LAMB."""
    return Experiment(
        name="albert_base_v2",
        model=albert.PRESETS["albert-base-v2"](head=heads.PRETRAINING),
        vocabulary="vocabularies/albert-base-v2",
        data=Data(
            modules=("tasks.wikipedia",),
            train="wikipedia_mlm_sop_ngram",
            lengths={"inputs": 512, "targets": 512, "predictions": 77},
            batch_size=4096,
        ),
        objective=SentencePairModeling(),
        optimizer=LAMB(
            learning_rate=Linear(peak=1.76e-3, warmup_steps=3125),
            eps=1e-6,
            bias_correction=False,
            weight_decay=0.01,
            clip_norm=1.0,
        ),
        train=Train(steps=125_000, log_every=100, micro_batches=2),
        evaluate=Evaluate(tasks=("wikipedia_mlm_sop_ngram",), every=5_000, batch_size=512, max_examples=4096),
        checkpoint=Checkpoint(every=2_500, keep=3),
        topology="v4:4x4x4",
    )
