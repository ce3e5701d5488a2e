"""Programs kept for the next start: found again, never in place of another, and in nobody's way."""

import os
import subprocess
import sys
import textwrap

import jax
import pytest

from t2t.train import compile_cache


def test_the_variable_of_jax_comes_first(tmp_path):
    before = jax.config.jax_compilation_cache_dir
    assert before is not None  # tests/conftest.py sets it
    with compile_cache.used(tmp_path / "cache"):
        assert jax.config.jax_compilation_cache_dir == before


PROGRAM = textwrap.dedent("""
    import pathlib, sys, time
    import jax, jax.numpy as jnp
    from t2t.train import compile_cache
    from t2t.train.clock import Clock
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    directory, factor = pathlib.Path(sys.argv[1]), float(sys.argv[2])
    jax.jit(jnp.cos)(jnp.ones(2))  # JAX has compiled before the run begins
    clock = Clock()
    with compile_cache.used(directory):
        x = jnp.linspace(-1, 1, 64 * 64).reshape(64, 64)
        y = jax.jit(lambda x: jax.lax.fori_loop(0, 5, lambda i, y: jnp.sin(y @ y * factor) + i, x))(x)
        print(clock.cache_hits(), float(y.sum()).hex())
    assert jax.config.jax_compilation_cache_dir is None
""")


def start(directory, factor: float, *, check=True) -> tuple[int, str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    environment |= {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": ""}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, directory, str(factor)],
        env=environment,
        capture_output=True,
        text=True,
        check=check,
    )
    hits, value = done.stdout.split()
    return int(hits), value


@pytest.mark.slow
def test_a_second_start_finds_the_programs_of_the_first_and_equal_numbers(tmp_path):
    hits, value = start(tmp_path / "cache", 0.5)
    assert hits == 0 and list((tmp_path / "cache").iterdir())
    again, same = start(tmp_path / "cache", 0.5)
    assert again > 0 and same == value
    # Another program, and damaged entries, are compiled.
    assert start(tmp_path / "cache", 0.25)[1] == start(tmp_path / "other", 0.25)[1] != value
    for entry in (tmp_path / "cache").glob("*-cache"):
        entry.write_bytes(entry.read_bytes()[:100])
    assert start(tmp_path / "cache", 0.5) == (0, value)
