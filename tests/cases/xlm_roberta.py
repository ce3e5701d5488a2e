from tests.cases import roberta

CASES = roberta.cases("xlm-roberta", "XLMRoberta")

IS_DERIVED = True

COUNTS = {
    "xlm-roberta-base": (278_043_648, 278_295_186),
    "xlm-roberta-large": (559_890_432, 560_142_482),
}
