from t2t import heads
from tests.cases import Case

SIZES = {
    "vocab_size": 53,
    "n_embd": 20,
    "n_layer": 3,
    "n_head": 4,
    "n_positions": 40,
    "bos_token_id": 1,
    "eos_token_id": 1,
}

CASES = (
    Case(name="gpt2", architecture="GPT2LMHeadModel", config=SIZES, side="decoder", is_decoding=True),
    Case(name="gpt2-inner", architecture="GPT2LMHeadModel", side="decoder", config={**SIZES, "n_inner": 28,
         "activation_function": "relu", "layer_norm_epsilon": 1e-6, "n_layer": 1, "n_head": 5}),
    Case(name="gpt2-untied", architecture="GPT2LMHeadModel", config={**SIZES, "tie_word_embeddings": False},
         side="decoder"),
    Case(name="gpt2-bare", architecture="GPT2Model", config={**SIZES, "n_layer": 2}, side="decoder"),
    Case(name="gpt2-sequence", architecture="GPT2ForSequenceClassification", side="decoder",
         config={**SIZES, "num_labels": 3, "pad_token_id": 0}),
    Case(name="gpt2-tokens", architecture="GPT2ForTokenClassification", side="decoder",
         config={**SIZES, "num_labels": 5, "n_layer": 2}),
    Case(name="gpt2-choice", architecture="GPT2DoubleHeadsModel", config={**SIZES, "summary_first_dropout": 0.2},
         side="decoder", choices=True),
    Case(name="gpt2-span", architecture="GPT2ForQuestionAnswering", side="decoder", config={**SIZES, "n_head": 2}),
)  # fmt: skip

LABELS = (
    ({"classifier_dropout": 0.3}, heads.TokenClassification(), {"dropout": 0.3}),
    ({"summary_first_dropout": 0.3}, heads.MultipleChoice(), {"dropout": 0.3}),
)

COUNTS = {
    "gpt2": (124_439_808, 124_439_808),
    "gpt2-medium": (354_823_168, 354_823_168),
    "gpt2-large": (774_030_080, 774_030_080),
    "gpt2-xl": (1_557_611_200, 1_557_611_200),
    "distilgpt2": (81_912_576, 81_912_576),
    "gpt3-175b": (174_604_259_328, 174_604_259_328),
}
