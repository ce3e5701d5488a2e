"""Every class that transformers has of our families is read, or refused by its name."""

import importlib
import inspect

import pytest

from t2t import families
from tests.hf import oracle

pytestmark = [pytest.mark.hf, pytest.mark.slow]

READ = {case.architecture for case in oracle.CASES}


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
    assert classes - READ - set(family.refused) - BARE == set()


BARE = {"OpenAIGPTModel"}
"""Models without a head that are read as those with the output of their language model, and are among no cases."""
