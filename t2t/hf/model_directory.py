"""A model directory of t2t's own: parameters as safetensors under their paths, written one stacked leaf at a time.

    config.json    {"t2t": version, "model": config, "start_id": token before a decoder's text,
                    "ends_prompts": whether one follows, "source": where from,
                    "origin": what an export says as the files there do}
    params/        *.safetensors, by paths such as decoder/layers_0/attention/query/kernel
    vocabulary/

Everything that takes a model reads it: `t2t.load`, `--init`, generate, score, export.
"""

import json
from pathlib import Path

from t2t import __version__, config_values, staging
from t2t.errors import UsageError
from t2t.hf import files, load
from t2t.vocabulary import Vocabulary

PARAMS = "params"
"""The folder of the parameters."""

VOCABULARY = "vocabulary"
"""The folder of the vocabulary."""


def check_directory(directory: Path) -> None:
    """Refuses to write over the config.json of anything but such a model: of a run, a checkpoint, an export.

    Raises:
        UsageError: the directory holds one.
    """
    file = directory / "config.json"
    if not file.is_file():
        return
    try:
        content = json.loads(file.read_bytes())
    except ValueError:
        content = None
    if not isinstance(content, dict) or not {"t2t", "model"} <= content.keys():
        raise UsageError(
            f"{directory} holds something else than an imported model (see its config.json), which an import would "
            "destroy: choose another directory"
        )


def write(directory: Path, opened: load.HuggingFaceCheckpoint, *, dtype: str = "float32") -> list[str]:
    """Writes what a Hugging Face directory holds; returns the names of the files.

    At no time more than one parameter is in memory. What an earlier import wrote there stays until all is written.

    Args:
        directory: made if missing.
        opened: by `t2t.hf.load.open_directory`, which decides about heads and what is left out.
        dtype: that the parameters are stored in: float32, bfloat16 or float16.

    Raises:
        UsageError: the directory holds a run, a checkpoint or a Hugging Face model; the vocabulary is not understood or
            of another model; a parameter is too large for its type.
    """
    check_directory(directory)
    if dtype not in files.DTYPES:
        raise ValueError(f"dtype is {dtype!r}; possible are {', '.join(files.DTYPES)}")
    vocabulary = None if opened.vocabulary is None else _vocabulary(opened)
    about = {
        "t2t": __version__,
        "model": config_values.to_json(opened.config),
        "start_id": load.start_id(opened.directory, opened.config),
        "ends_prompts": load.ends_prompts(opened.directory, opened.config),
        "source": str(opened.directory),
        "origin": opened.origin,
    }
    leaves = [
        files.Tensor(path, shape, lambda path=path: opened.leaf(path, dtype=dtype))
        for path, shape in opened.shapes.items()
    ]
    stale = [*(f"{PARAMS}/{pattern}" for pattern in files.STALE), f"{VOCABULARY}/*"]
    with staging.replacing(directory, stale=stale) as folder:
        (folder / PARAMS).mkdir()
        written = files.write(folder / PARAMS, leaves, dtype=dtype, max_shard_bytes=files.MAX_SHARD_BYTES)
        if vocabulary is not None:
            vocabulary.save(folder / VOCABULARY)
        (folder / "config.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    return ["config.json", *(f"{PARAMS}/{name}" for name in written)]


def _vocabulary(opened: load.HuggingFaceCheckpoint) -> Vocabulary:
    mend = (
        "Name files of the right one (t2t import --vocabulary PATH), or import the model without (--without-vocabulary)"
    )
    try:
        vocabulary = Vocabulary.load(opened.vocabulary)
    except (ValueError, OSError) as error:
        raise UsageError(f"the vocabulary is not understood: {error}. {mend}") from error
    if vocabulary.size > opened.config.vocab_size:
        raise UsageError(
            f"{opened.vocabulary} has {vocabulary.size} ids, the model {opened.config.vocab_size} rows: it is the "
            f"vocabulary of another model. {mend}"
        )
    return vocabulary
