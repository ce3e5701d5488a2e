"""Every class that transformers has of our families is read, or refused by its name."""

import importlib
import inspect

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
