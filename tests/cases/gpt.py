from tests.cases import Case

SIZES = {"vocab_size": 53, "n_embd": 20, "n_layer": 3, "n_head": 4, "n_positions": 40}

CASES = (
    Case(name="gpt", architecture="OpenAIGPTLMHeadModel", config=SIZES, side="decoder", is_decoding=True),
    Case(name="gpt-relu", architecture="OpenAIGPTLMHeadModel", side="decoder",
         config={**SIZES, "afn": "relu", "n_layer": 2, "n_head": 2}),
    Case(name="gpt-sequence", architecture="OpenAIGPTForSequenceClassification", side="decoder",
         config={**SIZES, "num_labels": 3, "pad_token_id": 0}),
    Case(name="gpt-choice", architecture="OpenAIGPTDoubleHeadsModel", config={**SIZES, "n_layer": 2}, side="decoder",
         choices=True),
)  # fmt: skip

READ_AS_OTHERS = frozenset({"OpenAIGPTModel"})

COUNTS = {"openai-gpt": (116_534_784, 116_534_784)}
