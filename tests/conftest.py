"""The strict surroundings of every test: 8 virtual CPU devices, checked shapes, no silent promotion.

Environment variables are set before anything imports jax, so that subprocesses started by tests inherit them too.
"""

import os
import pathlib
import warnings

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
# Most of the time of the tests is compilation: machine code is not optimised, loops are fused by XLA's plainer emitter,
# and programs are kept between runs.
FLAGS = {
    "xla_force_host_platform_device_count": 8,
    "xla_backend_optimization_level": 0,
    "xla_cpu_use_fusion_emitters": "false",
}
for name, value in FLAGS.items():
    if name not in os.environ.get("XLA_FLAGS", ""):
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --{name}={value}".strip()
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(REPOSITORY / ".jax_cache"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.5")
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH")]))

import jaxtyping  # noqa: E402

# Every jaxtyping annotation inside t2t is checked by beartype from here on; t2t must not have been imported before.
jaxtyping.install_import_hook("t2t", "type_checking.check")

import hypothesis  # noqa: E402
import jax  # noqa: E402
import pytest  # noqa: E402

# The same examples in every run; compilation makes the first of them slow, so there is no deadline.
hypothesis.settings.register_profile("t2t", deadline=None, derandomize=True, max_examples=50)
hypothesis.settings.load_profile("t2t")

STRICT = ("functional", "nn", "models", "objectives")
"""Folders of tests that run with strict dtype promotion and without rank promotion, as the code they test must."""


def _is_strict(item: pytest.Item) -> bool:
    folders = item.path.relative_to(REPOSITORY / "tests").parts[:-1]
    return bool(folders) and folders[0] in STRICT


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item):
    """Run the tests of the pure layers, their fixtures included, under strict promotion rules."""
    if not _is_strict(item):
        return (yield)
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        return (yield)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Forget the programs of a module with its last test: kept for the whole session, they take ten gigabytes."""
    if nextitem is None or nextitem.path != item.path:
        jax.clear_caches()


@pytest.fixture
def key() -> jax.Array:
    """One PRNG key; a test that draws more than once splits it."""
    return jax.random.key(0)


@pytest.fixture
def x64():
    """Double precision for the length of one test."""
    with warnings.catch_warnings(), jax.enable_x64(True):
        yield
