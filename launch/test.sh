#!/usr/bin/env bash
# Everything continuous integration checks: format, lint, documentation, tests. From a fresh clone, or again.
#     bash launch/test.sh           all tests but the full-size ones (marked nightly)
#     bash launch/test.sh --fast    unmarked tests only
# What follows is given to pytest: bash launch/test.sh --fast tests/nn -k attention
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

markers="not nightly"
if [ "${1:-}" = "--fast" ]; then
    markers="not nightly and not slow and not hf and not hf4 and not multi_device"
    shift
fi

bash launch/setup.sh test,docs
pip() { .venv/bin/python -m pip install --progress-bar off --quiet "$@"; }

# The reference implementation of the models. The CPU build, from PyTorch's own index where it can be reached.
if ! .venv/bin/python -c 'import torch' 2>/dev/null; then
    echo "installing torch"
    if .venv/bin/python -c 'import urllib.request as r; r.urlopen("https://download.pytorch.org/whl/cpu/torch/", timeout=10)' 2>/dev/null; then
        pip torch --index-url https://download.pytorch.org/whl/cpu
    else
        pip torch==2.13.0 || pip 'torch>=2.6,<3'
    fi
fi

# Opens exported sentence embeddings; after torch, or it would bring another build of it.
.venv/bin/python -c 'import sentence_transformers' 2>/dev/null || pip 'sentence-transformers>=5' ||
    echo "could not install sentence-transformers: its tests are skipped" >&2

# Transformers 4.57 still has every family; it lives beside the environment, in .hf4, for tests marked hf4.
if [ ! -e .hf4/transformers-4.57.6.dist-info ]; then
    echo "installing transformers 4.57.6 into .hf4"
    rm -rf .hf4
    pip --target .hf4 --no-deps transformers==4.57.6 tokenizers==0.22.2 huggingface_hub==0.36.2 \
        requests urllib3 charset-normalizer certifi idna || echo "could not install .hf4: tests marked hf4 are skipped" >&2
fi

# Apache Beam wants an older protobuf than the newest SentencePiece: it lives beside the environment, in .beam, with the
# versions that go with it; the tests of its pipelines run in a process of their own.
if [ ! -e .beam/apache_beam-2.77.0.dist-info ]; then
    echo "installing apache-beam 2.77.0 into .beam"
    rm -rf .beam
    pip --target .beam --no-deps apache-beam==2.77.0 protobuf==6.33.6 sentencepiece==0.2.2 pyarrow==25.0.1 \
        cryptography==50.0.2 cffi==2.1.1 pycparser==3.12 fastavro==1.13.1 fasteners==0.20 httplib2==0.32.1 \
        pyparsing==3.3.3 jsonpickle==4.1.4 objsize==0.7.1 pymongo==4.20.1 dnspython==2.9.2 proto-plus==1.29.0 \
        python-dateutil==2.9.0.post0 pytz==2026.6 sortedcontainers==2.4.0 six==1.17.0 zstandard==0.25.0 ||
        echo "could not install .beam: tests of pipelines are skipped" >&2
fi

# The compiler for TPU lives beside the environment, in .libtpu: where JAX finds it and no TPU, it complains at length.
if [ ! -e .libtpu/libtpu-0.0.42.1.dist-info ]; then
    echo "installing libtpu 0.0.42.1 into .libtpu"
    rm -rf .libtpu
    pip --target .libtpu --no-deps libtpu==0.0.42.1 ||
        echo "could not install .libtpu: tests that compile for TPU are skipped" >&2
fi

.venv/bin/ruff format --check .
.venv/bin/ruff check .
.venv/bin/python -m mkdocs build --strict --quiet
.venv/bin/python -m pytest -m "$markers" -n "${T2T_TEST_WORKERS:-2}" --dist worksteal --durations 15 "$@"
