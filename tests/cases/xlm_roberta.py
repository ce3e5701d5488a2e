from t2t import heads
from tests.cases import roberta

CASES = roberta.cases("xlm-roberta", "XLMRoberta")

IS_DERIVED = True

COUNTS_POSITIONS = True

LABELS = (({"classifier_dropout": 0.3}, heads.TokenClassification(), {"dropout": 0.3}),)

COUNTS = {
    "xlm-roberta-base": (278_043_648, 278_295_186),
    "xlm-roberta-large": (559_890_432, 560_142_482),
}
