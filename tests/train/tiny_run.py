"""A run of seconds: a T5 of two layers on made-up sentences of bytes; also the module that registers its tasks."""

import dataclasses
import random
from typing import Any

from t2t import config
from t2t.data import registry
from t2t.models.encoder_decoder import EncoderDecoderConfig
from t2t.nn.attention import AttentionConfig
from t2t.nn.block import BlockConfig
from t2t.nn.embed import EmbedConfig
from t2t.nn.feed_forward import FeedForwardConfig
from t2t.nn.heads import LanguageModelHead
from t2t.nn.norm import RMSNorm
from t2t.nn.positions.t5_bias import T5Bias
from t2t.nn.stack import StackConfig
from t2t.objectives.language_modeling import LanguageModeling
from t2t.train import text_metrics
from t2t.train.optimizer import AdamW, Constant

SPLITS = {"train": 60, "validation": 13}
WORDS = ("sun", "moon", "river", "stone", "wind", "tree", "bird", "fish", "road", "house")


def sentences(split: str) -> list[dict[str, str]]:
    draw = random.Random(split)
    return [{"text": " ".join(draw.choices(WORDS, k=draw.randint(4, 12)))} for _ in range(SPLITS[split])]


def questions(split: str) -> list[dict[str, str]]:
    return [{"inputs": f"first: {row['text']}"[:40], "targets": row["text"].split()[0]} for row in sentences(split)]


def baseline(task: str, split: str = "validation", max_examples: int | None = None) -> dict[str, float]:
    assert split in SPLITS
    if task != "tiny_first":
        raise ValueError(task)
    return {"accuracy": 100 / len(WORDS)}


registry.add_objectives("tiny", registry.TextSource(sentences, splits=tuple(SPLITS)))
registry.add_text_to_text(
    "tiny_first", registry.TextSource(questions, splits=tuple(SPLITS)), metric_fns=[text_metrics.accuracy]
)


def block(*, cross: bool) -> BlockConfig:
    attention = AttentionConfig(num_heads=2, head_dim=8, scale=1.0, dropout=0.1)
    return BlockConfig(
        norm=RMSNorm(),
        norm_position="pre",
        attention=attention,
        cross_attention=attention if cross else None,
        feed_forward=FeedForwardConfig(d_ff=24, activation="relu", dropout=0.1),
        dropout=0.1,
    )


def stack(*, cross: bool) -> StackConfig:
    return StackConfig(
        num_layers=2,
        d_model=16,
        pattern=(block(cross=cross),),
        position=T5Bias(num_buckets=8, max_distance=20, bidirectional=not cross),
        dropout=0.1,
        final_norm=RMSNorm(),
    )


def model(vocab_size: int = 384) -> EncoderDecoderConfig:
    return EncoderDecoderConfig(
        embed=EmbedConfig(vocab_size=vocab_size, dim=16, initializer_std=1.0, dropout=0.1),
        encoder=stack(cross=False),
        decoder=stack(cross=True),
        head=LanguageModelHead(tied=True, scale_by_width=True),
    )


def experiment(**changes: Any) -> config.Experiment:
    """The run; `changes` by field, dictionaries go into the part of that name (train={"steps": 3})."""
    base = config.Experiment(
        name="tiny",
        seed=3,
        model=model(),
        data=config.Data(
            modules=("tests.train.tiny_run",),
            train="tiny_span_corruption",
            lengths={"inputs": 24, "targets": 16},
            batch_size=8,
        ),
        objective=LanguageModeling(z_loss=1e-4),
        optimizer=AdamW(learning_rate=Constant(peak=3e-3, warmup_steps=3), weight_decay=0.01, clip_norm=1.0),
        train=config.Train(steps=12, log_every=4),
        evaluate=config.Evaluate(tasks=("tiny_span_corruption",), every=6, batch_size=8),
        checkpoint=config.Checkpoint(every=5, keep=3),
    )
    for name, change in changes.items():
        value = dataclasses.replace(getattr(base, name), **change) if isinstance(change, dict) else change
        base = dataclasses.replace(base, **{name: value})
    return base
