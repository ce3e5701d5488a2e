"""What a run is: `Experiment` and its parts as frozen dataclasses.

A file in `configs/` returns an `Experiment`; the command line turns every field below into a typed flag, with the line
under the field as its help. Choosing is choosing a class (`optimizer=Adafactor(...)`), so the fields `model`,
`objective` and `optimizer` take any frozen dataclass of the kind their comment names; this module imports none of them
and stays light.
"""

import dataclasses
from typing import Any, Literal

RESUMABLE = (
    "train.steps", "train.compile_cache", "data.eval_files", "evaluate", "checkpoint", "faults", "watch", "mesh",
    "topology",
)  # fmt: skip
"""The settings that may change between a run and its continuation."""


def _require_positive(owner: str, **values: float | None) -> None:
    for field, value in values.items():
        if isinstance(value, int | float) and value <= 0:  # other types are `config_values.check_types`' to refuse
            raise ValueError(f"{owner}.{field} is {value}; it must be positive")


def _numbers(settings: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(settings) if field.type in (int, float)]


MAX_OPEN_ROWS = 4096
"""Rows that packing may keep open for each row of the batch."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Data:
    """Which tasks the run learns from, and the shape of its batches."""

    modules: tuple[str, ...] = ()
    """Python modules that register the tasks when imported, such as tasks.pydocs."""
    train: str | dict[str, float]
    """Name of the task to learn, or the rate of each task of a mixture."""
    lengths: dict[str, int]
    """Tokens per row of each feature, such as inputs 512 and targets 114."""
    batch_size: int
    """Rows of the global batch, over all devices and micro-batches."""
    packing: bool = True
    """Whether several short examples share a row."""
    open_rows: int = 1
    """Rows that packing keeps open for each row of the batch; an example goes to the first with room for it. 1 packs in
    order; some 30 fill rows better where examples differ in length."""
    files: tuple[str, ...] = ()
    """Your own text instead of the task's source: paths, globs or folders (txt, md, jsonl, csv, tsv, parquet, arrow,
    tfrecord, array_record; also .gz and .zst)."""
    eval_files: tuple[str, ...] = ()
    """Your own held-out text, like `files`."""
    field: str = "text"
    """Column that holds the text in files of records (all but txt and md)."""
    unit: Literal["file", "line", "paragraph"] = "paragraph"
    """What counts as one document in plain text files."""
    on_error: Literal["stop", "skip"] = "stop"
    """Whether a document that cannot be read (not UTF-8, no JSON) ends the reading, or is left out and counted."""

    def __post_init__(self):
        """Refuse shapes no batch can have."""
        _require_positive("data", batch_size=self.batch_size, open_rows=self.open_rows)
        if isinstance(self.open_rows, int) and (self.open_rows > 1 and not self.packing):
            raise ValueError(f"data.open_rows is {self.open_rows}; without data.packing it must be 1")
        if isinstance(self.open_rows, int) and self.open_rows > MAX_OPEN_ROWS:
            raise ValueError(
                f"data.open_rows is {self.open_rows}; it must be at most {MAX_OPEN_ROWS}, for the examples of so many "
                "rows are read before the first batch: some 30 fill rows well"
            )
        _require_positive("data.lengths", **self.lengths)
        if isinstance(self.train, dict):
            if not self.train:
                raise ValueError("data.train is an empty mixture; name at least one task")
            _require_positive("data.train", **self.train)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Train:
    """How long and in which arithmetic the run trains."""

    steps: int
    """Updates of the parameters, counted from the beginning of the run."""
    micro_batches: int = 1
    """Pieces a batch is cut into, to save memory; the update is the same apart from dropout masks and rounding."""
    log_every: int = 50
    """Steps between two lines of metrics."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Type of activations; auto is bfloat16 on accelerators and float32 on CPUs. Parameters are always float32."""
    remat: Literal["none", "full", "dots", "dots_no_batch"] | None = None
    """Which activations are computed again in the backward pass; None leaves it to the model's stack."""
    attention: Literal["auto", "reference", "splash", "flash", "cudnn", "triton"] = "auto"
    """What computes attention: a kernel that never holds the scores (splash and flash on TPU, cudnn and triton on GPU)
    or the reference. One that cannot honour a mask, bias or dropout is refused; auto takes the first that can."""
    compile_cache: Literal["run", "off"] = "run"
    """Where compiled programs are kept for the next start: in the run's directory, or nowhere. The environment variable
    JAX_COMPILATION_CACHE_DIR names another place."""

    def __post_init__(self):
        """Refuse runs without steps."""
        _require_positive("train", steps=self.steps, micro_batches=self.micro_batches, log_every=self.log_every)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Evaluate:
    """On which tasks, how often and how the run is evaluated."""

    tasks: tuple[str, ...] = ()
    """Tasks whose validation split is read, those of mixtures one by one; with metric functions also predicted."""
    every: int = 1000
    """Steps between two evaluations; one more follows the last step."""
    batch_size: int | None = None
    """Rows of an evaluation batch; None is the training batch."""
    max_examples: int | None = None
    """Examples of each task that are read, from the first; None is all."""
    beams: int = 1
    """Beams of generated predictions; 1 is greedy."""

    def __post_init__(self):
        """Refuse periods and sizes below one."""
        _require_positive(
            "evaluate", every=self.every, batch_size=self.batch_size, max_examples=self.max_examples, beams=self.beams
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """When the state of the run is written, and what is kept."""

    every: int = 1000
    """Steps between two checkpoints; one more follows the last step."""
    keep: int = 3
    """Checkpoints kept, the newest ones."""
    keep_every: int | None = None
    """Besides, checkpoints whose step is a multiple of it are kept for ever; None keeps none."""
    best: str | None = None
    """TASK/METRIC whose best checkpoint is kept besides, such as pydocs_topic/accuracy; None keeps none."""
    best_is: Literal["highest", "lowest"] = "highest"
    """Which value of `best` is the best."""

    def __post_init__(self):
        """Refuse periods and counts below one."""
        _require_positive("checkpoint", every=self.every, keep=self.keep, keep_every=self.keep_every)
        numbers = isinstance(self.keep_every, int) and isinstance(self.every, int)
        if numbers and self.keep_every % self.every:
            raise ValueError(
                f"checkpoint.keep_every is {self.keep_every}; it must be a multiple of checkpoint.every={self.every}, "
                "the steps at which checkpoints are written"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Faults:
    """What a run does when its numbers go wrong.

    To skip is to leave out the update: the step counts and the data go on. To roll back is to go back to the last
    checkpoint and on with the data after the bad batch.
    """

    on_nan: Literal["stop", "skip", "roll_back"] = "stop"
    """When the loss, its gradient or another metric is not finite."""
    on_spike: Literal["ignore", "stop", "skip", "roll_back"] = "ignore"
    """When the loss jumps."""
    spike_deviations: float = 6.0
    """Standard deviations above the mean of the last losses from which on a loss has jumped."""
    spike_window: int = 200
    """Number of last losses that mean and deviation are of; before so many are known, none has jumped."""
    max_skips: int = 10
    """Steps that may be left out within `skip_window` steps before the run stops."""
    skip_window: int = 1000
    """Number of steps within which `max_skips` is counted."""
    max_roll_backs: int = 3
    """How often a run may go back before it stops, from its beginning on."""

    def __post_init__(self):
        """Refuse limits below one."""
        _require_positive("faults", **{name: getattr(self, name) for name in _numbers(self)})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Watch:
    """How closely a run watches itself: profiles of some steps, and stacks where it hangs."""

    profile_at: tuple[int, ...] = ()
    """Steps from which on a profile is taken, into RUN/profile/STEP. The file RUN/profile-now asks for one at once."""
    profile_steps: int = 3
    """Steps that a profile covers."""
    hang_seconds: float | None = 1800.0
    """Seconds without a step, a batch of an evaluation or the like after which the stacks of all threads are written
    to log.txt; compilation does not count. None never does."""
    on_hang: Literal["report", "end"] = "report"
    """What follows the stacks: nothing, or the end of the process with exit code 1, so that it is started again."""

    def __post_init__(self):
        """Refuse steps and times below one."""
        _require_positive("watch", profile_steps=self.profile_steps, hang_seconds=self.hang_seconds)
        _require_positive("watch", **{f"profile_at[{i}]": step for i, step in enumerate(self.profile_at)})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Mesh:
    """Number of devices along each axis of the mesh, of which one may be -1, all that remain; and what follows it."""

    data: int = -1
    """Copies of the parameters, each with its part of the batch."""
    fsdp: int = 1
    """Parts of the batch among which parameters and optimizer state are divided too."""
    tensor: int = 1
    """Parts of heads, feed-forward width and vocabulary."""
    sequence: int = 1
    """Parts of the length of activations."""
    slices: int = -1
    """Groups of devices joined by the data centre's network, of which each takes its part of data; -1: TPU slices."""
    zero: bool = False
    """Whether each copy along data keeps and updates its part of the optimizer state alone (ZeRO)."""
    split_torus: bool = False
    """Whether an axis may take a part of a dimension of a TPU's torus, in which its ends do not meet: slower."""

    def __post_init__(self):
        """Refuse sizes that are no number of devices."""
        sizes = {axis: getattr(self, axis) for axis in ("data", "fsdp", "tensor", "sequence")}
        for axis, size in {**sizes, "slices": self.slices}.items():
            if size < 1 and size != -1:
                rest = "for those that the devices belong to" if axis == "slices" else "for the rest"
                raise ValueError(f"mesh.{axis} is {size}; it must be a positive number of devices, or -1 {rest}")
        if list(sizes.values()).count(-1) > 1:
            raise ValueError(f"only one axis of the mesh may be -1 (the rest of the devices); got {sizes}")


MAX_NAME, MAX_SEED = 200, 2**31 - 1
"""Bytes of a run's name, and the largest seed."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Experiment:
    """Everything that determines a run."""

    name: str
    """Name of the run; its directory is runs/NAME unless --workdir says otherwise."""
    seed: int = 0
    """Of initial parameters, dropout and the order and corruption of the data."""
    # An EncoderConfig, DecoderConfig or EncoderDecoderConfig.
    model: Any
    init: str | None = None
    """Run, checkpoint, model or Hugging Face directory whose parameters the run starts from."""
    init_partial: bool = False
    """Whether what does not fit of `init` (other shapes, absent, too much) is listed and begins fresh, instead of
    ending the run."""
    vocabulary: str | None = None
    """Directory or file of the vocabulary; None takes the one of `init`, else makes one (`vocabulary_size`)."""
    vocabulary_size: int | None = None
    """Ids of a SentencePiece vocabulary trained on the run's own text where none is given; None takes bytes."""
    vocabulary_sentinels: int = 100
    """Sentinels of that vocabulary, which has mode tokens too where a task asks for them; 300 suit UL2."""
    data: Data
    # An objective of t2t.objectives.
    objective: Any
    # Adafactor, AdamW or LAMB of t2t.train.optimizer.
    optimizer: Any
    train: Train
    evaluate: Evaluate = Evaluate()
    checkpoint: Checkpoint = Checkpoint()
    faults: Faults = Faults()
    watch: Watch = Watch()
    mesh: Mesh = Mesh()
    topology: str | None = None
    """TPU slice the config is made for, such as v5e:4x4; t2t plan checks it."""

    def __post_init__(self):
        """Refuse names that are no name of a directory."""
        if not self.name or self.name.startswith(".") or any(sign in self.name for sign in "/\\ "):
            raise ValueError(f"name is {self.name!r}; it names a directory, so no slashes, spaces or leading dots")
        if len(self.name.encode("utf-8", errors="replace")) > MAX_NAME or not self.name.isprintable():
            raise ValueError(f"name is {self.name!r}; a directory's has at most {MAX_NAME} bytes, all printable")
        if isinstance(self.seed, int) and not 0 <= self.seed <= MAX_SEED:
            raise ValueError(f"seed is {self.seed}; it must lie between 0 and {MAX_SEED}")
        _require_positive("experiment", vocabulary_size=self.vocabulary_size)
