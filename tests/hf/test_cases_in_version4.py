"""Our exports of every family in transformers 4.57.6: no key missing or left over, the outputs of the model in 5.

One process of the old version opens all directories, since importing it takes longer than everything else.
"""

import json

import numpy as np
import pytest

from t2t.hf import export, load
from tests.hf import oracle, version4

pytestmark = [pytest.mark.hf, pytest.mark.hf4, pytest.mark.slow]

OPEN = """
answer = {}
for name, path in given["models"].items():
    case = json.load(open(path + "/case.json"))
    cls = getattr(transformers, case["architecture"], None)
    if cls is None:
        answer[name] = None
        continue
    model, info = cls.from_pretrained(path, output_loading_info=True, attn_implementation="eager")
    inputs = {key: torch.tensor(array) for key, array in case["inputs"].items()}
    with torch.no_grad():
        out = model.eval()(**inputs, return_dict=True)
    answer[name] = {
        "problems": {key: sorted(map(str, found)) for key, found in info.items() if found},
        "outputs": {key: out[key].tolist() for key in given["names"] if out.get(key) is not None},
    }
"""

NAMES = sorted({name for names in oracle.NAMES.values() for name in names if "hidden" not in name})
"""Outputs of transformers that are compared; the last hidden state stands for all of them."""


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """Of every case: its batch, what transformers 5 computes, and what 4.57.6 finds in our export."""
    import torch

    names = [*NAMES, "last_hidden_state"]
    paths, expected = {}, {}
    for case in oracle.CASES:
        directory = tmp_path_factory.mktemp(case.name.replace(".", "_"))
        model = oracle.build(case)
        checkpoint = load.open_directory(oracle.save(model, directory / "theirs"))
        export.export(directory / "ours", config=checkpoint.config, params=checkpoint.params())
        arrays = oracle.batch(case, padded=True)
        inputs = oracle.inputs(case, arrays)
        with torch.no_grad():
            out = model(**inputs, return_dict=True)
        expected[case.name] = arrays, {name: out[name].numpy() for name in names if out.get(name) is not None}
        described = {"architecture": case.architecture, "inputs": {k: v.tolist() for k, v in inputs.items()}}
        (directory / "ours" / "case.json").write_text(json.dumps(described))
        paths[case.name] = str(directory / "ours")
    return expected, version4.run(OPEN, models=paths, names=names)


@pytest.mark.parametrize("case", oracle.CASES, ids=str)
def test_the_export_of_a_case(opened, case):
    expected, found = opened
    if found[case.name] is None:
        pytest.skip(f"transformers 4.57.6 has no {case.architecture}")
    assert found[case.name]["problems"] == {}
    arrays, outputs = expected[case.name]
    real = arrays["decoder_segment_ids" if case.side in ("decoder", "both") else "encoder_segment_ids"] != 0
    assert outputs.keys() == found[case.name]["outputs"].keys()
    for name, other in outputs.items():
        mine = np.array(found[case.name]["outputs"][name])
        if mine.shape[: real.ndim] == real.shape:
            mine, other = mine[real], other[real]
        np.testing.assert_allclose(mine, other, atol=1e-4, rtol=1e-4, err_msg=name)
