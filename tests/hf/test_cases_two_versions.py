"""The exports of all cases in transformers 4.57.6: no key missing or left over, the same numbers as ours.

One process of the old version opens the directories of all chosen cases, since importing it takes longer than all else.
"""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t.hf import export, load
from t2t.models import base
from tests.hf import oracle, version4

pytestmark = [pytest.mark.hf, pytest.mark.hf4, pytest.mark.slow]

OPEN = """
answer = {}
for name, (path, architecture, inputs) in json.load(open(given["cases"])).items():
    if not hasattr(transformers, architecture):
        answer[name] = None
        continue
    cls = getattr(transformers, architecture)
    model, info = cls.from_pretrained(path, output_loading_info=True, attn_implementation="eager")
    with torch.no_grad():
        out = model.eval()(**{k: torch.tensor(v) for k, v in inputs.items()}, output_hidden_states=True)
    found = {"problems": {k: sorted(map(str, v)) for k, v in info.items() if v}, "outputs": {}}
    for ours, theirs in given["names"].items():
        value = next((out[n] for n in theirs if out.get(n) is not None), None)
        if value is not None:
            found["outputs"][ours] = [v.tolist() for v in value] if isinstance(value, tuple) else value.tolist()
    answer[name] = found
"""


@pytest.fixture(scope="module")
def opened(request, tmp_path_factory):
    """What 4.57.6 computes with our exports of the chosen cases, and what we compute."""
    chosen = [item.callspec.params["case"] for item in request.session.items if item.module is request.module]
    given, ours = {}, {}
    for case in chosen:
        directory = tmp_path_factory.mktemp(case.name.replace("-", "_"))
        checkpoint = load.open_directory(oracle.save(oracle.build(case), directory / "theirs"))
        export.export(directory / "ours", config=checkpoint.config, params=checkpoint.params())
        arrays = oracle.batch(case, padded=True)
        inputs = {name: array.tolist() for name, array in oracle.inputs(case, arrays).items()}
        given[case.name] = (str(directory / "ours"), case.exported or case.architecture, inputs)
        network, params = base.Network(checkpoint.config), jax.tree.map(jnp.asarray, checkpoint.params())
        ours[case.name] = arrays, network.apply(params, arrays, hidden_states=True)
    file = tmp_path_factory.mktemp("cases") / "cases.json"
    file.write_text(json.dumps(given))
    return version4.run(OPEN, cases=str(file), names=oracle.NAMES), ours


@pytest.mark.parametrize("case", oracle.CASES, ids=str)
def test_export(opened, case):
    theirs, (arrays, ours) = opened[0][case.name], opened[1][case.name]
    if theirs is None:
        pytest.skip(f"transformers 4.57.6 has no {case.architecture}")
    assert theirs["problems"] == {}

    def array(value):
        return np.array(value, np.float32)

    found = {
        name: [array(v) for v in value] if name.endswith("hidden_states") else array(value)
        for name, value in theirs["outputs"].items()
    }
    oracle.assert_equal(ours, found, arrays)
