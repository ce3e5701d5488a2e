"""BART-base on Wikipedia: 139 million parameters, a text restored from infilled and permuted sentences.

Reproduces: the objective of BART (30 % of the words infilled, all sentences permuted) on its base size, on Wikipedia
    alone. The released models read the 160 GB of RoBERTa, of which BooksCorpus, Stories and CC-News are not public.
    Their noise has spans of 3.5 words and a random token for each tenth mask: --data.train wikipedia_bart_released.
Paper: Lewis et al., "BART: Denoising Sequence-to-Sequence Pre-training for Natural Language Generation, Translation,
    and Comprehension", arXiv:1910.13461, sections 2.2 and 5.1: 500,000 steps of 8000 rows, of the large model; rate,
    warm-up, decay and clipping as its authors published them (facebookresearch/fairseq issue 1899), with Adam
    as fairseq has it. The paper trains without dropout in the last tenth, here it stays.
Data: wikipedia/20230601.en of TFDS (tasks/wikipedia.py) and BART's vocab.json with merges.txt, which are GPT-2's.
    Documents are not joined, so that rows hold several short ones; 32 open rows fill them.
Hardware and time: not run at full length yet. Four trillion tokens of both sides at some 5e8 floating-point operations
    each are 2e21: nine days on 64 TPU v4 chips at 15 % of their peak.
Expected: the paper gives no loss of this size; its ablation on Wikipedia and books has SQuAD 1.1 F1 90.8, MNLI 83.8.
Command: t2t train pretrain/bart_base --vocabulary PATH
"""

from t2t.config import Checkpoint, Data, Evaluate, Experiment, Train
from t2t.families import bart
from t2t.objectives.language_modeling import LanguageModeling
from t2t.train.optimizer import AdamW, Linear


def get_config() -> Experiment:
    """The paper's batch and steps on the base size."""
    return Experiment(
        name="bart_base",
        model=bart.PRESETS["bart-base"](),
        vocabulary="vocabularies/bart-base",
        data=Data(
            modules=("tasks.wikipedia",),
            train="wikipedia_bart",
            lengths={"inputs": 512, "targets": 512},
            batch_size=8000,
            open_rows=32,
        ),
        objective=LanguageModeling(logits_chunk=128),
        optimizer=AdamW(learning_rate=Linear(peak=4e-4, warmup_steps=10_000), weight_decay=0.01, clip_norm=0.1),
        train=Train(steps=500_000, log_every=100, micro_batches=5),
        evaluate=Evaluate(tasks=("wikipedia_bart",), every=10_000, batch_size=512, max_examples=4096),
        checkpoint=Checkpoint(every=5_000, keep=3),
        topology="v4:4x4x4",
    )
