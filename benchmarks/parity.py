"""How far t2t and transformers are apart, for every family and head, both ways: the table of docs/reference/parity.md.

    python -m benchmarks.parity                     all families
    python -m benchmarks.parity bert t5             those whose cases begin so

Models are tiny and random, every parameter of them; attention is eager; rows are padded. `import`: transformers wrote
the directory, we read it. `export`: we wrote it, transformers read it without a key missing or left over. A number is
the largest difference of any output, all hidden states included, in float32; the tests allow 1e-4.
"""

import functools
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import traverse_util

from t2t.hf import export, load
from t2t.models import base
from tests.cases import Case, all_cases, further_cases
from tests.hf import oracle


def main(prefixes: list[str]) -> None:
    """Prints a row for each case as it is done."""
    print("| class of transformers | case | parameters | import | export |")
    print("|---|---|---|---|---|")
    for case in sorted((*all_cases(), *further_cases()), key=lambda case: case.family):
        if not prefixes or case.name.startswith(tuple(prefixes)):
            with tempfile.TemporaryDirectory() as directory:
                print("| " + " | ".join(row(case, Path(directory))) + " |", flush=True)


def row(case: Case, directory: Path) -> Iterator[str]:
    """Name, size, and the differences in both directions."""
    import transformers

    model = oracle.build(case)
    opened = load.open_directory(oracle.save(model, directory / "theirs"))
    arrays = oracle.batch(case, padded=True)
    params = opened.params()
    yield case.architecture
    yield case.name
    yield f"{base.count_parameters(opened.config):,}"
    theirs = oracle.outputs(case, model, arrays)
    yield f"{oracle.largest_difference(_ours(opened.config, params, arrays), theirs, arrays):.1e}"
    rng = np.random.default_rng(1)
    leaves = traverse_util.flatten_dict(params, sep="/")
    drawn = {path: (0.2 * rng.normal(size=v.shape) + path.endswith("scale")).astype("f4") for path, v in leaves.items()}
    params = traverse_util.unflatten_dict(drawn, sep="/")
    export.export(directory / "ours", config=opened.config, params=params)
    reopened, info = getattr(transformers, case.exported or case.architecture).from_pretrained(
        directory / "ours", output_loading_info=True, attn_implementation="eager"
    )
    problems = sorted(name for name, found in info.items() if found)
    outputs = oracle.outputs(case, reopened.eval(), arrays)
    difference = oracle.largest_difference(_ours(opened.config, params, arrays), outputs, arrays)
    yield f"{difference:.1e}" if not problems else f"{difference:.1e}, {', '.join(problems)}"


@functools.cache
def _compiled(config: Any) -> Any:
    return jax.jit(lambda params, batch: base.Network(config).apply(params, batch, hidden_states=True))


def _ours(config: Any, params: Any, arrays: dict[str, np.ndarray]) -> Any:
    return _compiled(config)(jax.tree.map(jnp.asarray, params), arrays)


if __name__ == "__main__":
    main(sys.argv[1:])
