from tests.cases import bart

CASES = (
    *bart.cases("mbart", "MBart", scale_embedding=True),
    bart.case("mbart-unscaled", "MBartForConditionalGeneration", activation_function="silu"),
)

IS_DERIVED = True

LABELS = bart.LABELS

COUNTS = {"mbart-large-cc25": (610_851_840, 610_851_840)}
