"""Every class that transformers has of our families is read, or refused by its name."""

import importlib
import inspect
import pathlib
import re

import pytest

from t2t import families
from tests import cases
from tests.hf import oracle

pytestmark = [pytest.mark.hf, pytest.mark.slow]

READ = {case.architecture for case in oracle.CASES}
READ_AS_OTHERS = cases.said("READ_AS_OTHERS", frozenset())


@pytest.mark.parametrize("family", families.all_families().values(), ids=lambda family: family.model_type)
def test_every_class_is_read_or_refused(family):
    import transformers

    if family.model_type not in transformers.CONFIG_MAPPING:
        pytest.skip(f"transformers {transformers.__version__} has no {family.model_type}")
    config = transformers.CONFIG_MAPPING[family.model_type]
    module = importlib.import_module(config.__module__.replace("configuration_", "modeling_"))
    classes = {
        name
        for name, found in vars(module).items()
        if inspect.isclass(found)
        and issubclass(found, transformers.PreTrainedModel)
        and found.__module__ == module.__name__
        and hasattr(transformers, name)
        and "pretrained" not in name.lower()
    }
    assert set(family.refused) <= classes
    assert not set(family.refused) & READ
    assert classes - READ - set(family.refused) - READ_AS_OTHERS[family.model_type] == set()


def test_cases_are_of_the_family_whose_file_has_their_name():
    import transformers

    kinds = {case.name: getattr(transformers, case.architecture).config_class.model_type for case in oracle.CASES}
    assert kinds == {case.name: case.family for case in oracle.CASES}


def test_the_table_of_parity_has_a_row_for_every_case():
    """`python -m benchmarks.parity NAME` prints the rows that are missing."""
    page = pathlib.Path(__file__).parents[2] / "docs" / "reference" / "parity.md"
    text = page.read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w+) \| ([\w.-]+) \| [\d,]+ \| ([\d.e-]+) \| ([\d.e-]+) \|$", text, re.MULTILINE)
    every = (*oracle.CASES, *cases.further_cases())
    assert {(case.architecture, case.name) for case in every} == {row[:2] for row in rows}
    assert max(float(number) for row in rows for number in row[2:]) < 1e-4
    assert f"{len(rows)} tiny random models" in text
