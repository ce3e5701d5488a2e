"""XLM on the 15 languages of XNLI: 249 million parameters, masked words of texts and of pairs of translations.

Reproduces: the pretraining of xlm-mlm-tlm-xnli15-1024: streams of 256 tokens in one language, and translations of each
    other in one row, in turn; languages are sampled with exponent 0.7, rare words are masked more often.
Paper: Conneau and Lample, "Cross-lingual Language Model Pretraining", arXiv:1901.07291, sections 3 and 5.1: 64 streams
    on each of 64 GPUs; the rate rises to 1e-4 in 30,000 steps and falls as 1/sqrt(step), as in the README of
    facebookresearch/XLM. Batches of it hold either texts or translations, here rows of both. The paper stops when
    validation perplexity no longer falls and gives no number of steps; 300,000 are ours.
Data: wikipedia/20230601.LANGUAGE of TFDS and translations from OPUS (tasks/xlm.py says how to fetch them), and XLM's
    vocabulary of 95,000 ids. Make a token cache first: t2t cache pretrain/xlm_mlm_tlm.
Hardware and time: not run at full length yet; the authors trained on 64 V100 GPUs.
Expected: the paper gives no perplexity; fine-tuned on English alone, XNLI accuracy 75.1 on average (table 1).
Command: t2t train pretrain/xlm_mlm_tlm --vocabulary PATH
"""

from t2t import heads
from t2t.config import Checkpoint, Data, Evaluate, Experiment, Train
from t2t.families import xlm
from t2t.objectives.masked import MaskedLanguageModeling
from t2t.train.optimizer import AdamW, InverseSquareRoot


def get_config() -> Experiment:
    """64 streams of 256 tokens on each of 64 devices."""
    return Experiment(
        name="xlm_mlm_tlm",
        model=xlm.PRESETS["xlm-mlm-tlm-xnli15-1024"](head=heads.MaskedLM()),
        vocabulary="vocabularies/xlm-mlm-tlm-xnli15-1024",
        data=Data(
            modules=("tasks.xlm",),
            train="xlm_mlm_tlm",
            lengths={"inputs": 256, "targets": 256, "predictions": 40},
            batch_size=64 * 64,
        ),
        objective=MaskedLanguageModeling(),
        optimizer=AdamW(
            learning_rate=InverseSquareRoot(peak=1e-4, warmup_steps=30_000, warmup="linear"),
            eps=1e-6,
            weight_decay=0.01,
        ),
        train=Train(steps=300_000, log_every=100, micro_batches=2),
        evaluate=Evaluate(
            tasks=("xlm_en_mlm", "xlm_sw_mlm", "xlm_zh_mlm", "xlm_en_fr_tlm"),
            every=10_000,
            batch_size=512,
            max_examples=4096,
        ),
        checkpoint=Checkpoint(every=5_000, keep=3),
        topology="v5e:8x8",
    )
