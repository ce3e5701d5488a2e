from t2t import heads
from tests.cases import Case

SIZES = {
    "vocab_size": 53,
    "emb_dim": 24,
    "n_layers": 3,
    "n_heads": 4,
    "max_position_embeddings": 40,
    "n_langs": 5,
    "pad_token_id": 0,  # the row of padding has no gradient in torch, and no input holds token 0
}


def case(name: str, architecture: str, *, num_languages: int = 5, choices: bool = False, **changes: object) -> Case:
    config = {**SIZES, **changes}
    return Case(name=name, architecture=architecture, config=config, num_languages=num_languages, choices=choices)


CASES = (
    case("xlm", "XLMModel"),
    # Without ids of languages none of their embeddings is added.
    case("xlm-no-ids", "XLMModel", num_languages=0, n_layers=1, n_heads=3, unk_index=4),
    case("xlm-no-languages", "XLMModel", num_languages=0, use_lang_emb=False, gelu_activation=False,
         sinusoidal_embeddings=True, layer_norm_eps=1e-6, n_layers=2),
    case("xlm-mlm", "XLMWithLMHeadModel"),
    case("xlm-mlm-untied", "XLMWithLMHeadModel", tie_word_embeddings=False, n_langs=1, num_languages=0, n_layers=1),
    case("xlm-sequence", "XLMForSequenceClassification", num_labels=3),
    case("xlm-tokens", "XLMForTokenClassification", num_labels=7),
    case("xlm-span", "XLMForQuestionAnsweringSimple"),
    case("xlm-choice", "XLMForMultipleChoice", choices=True, num_labels=3),
)  # fmt: skip

LABELS = (
    ({"summary_first_dropout": 0.3}, heads.SequenceClassification(), {"dropout": 0.3}),
    ({"summary_first_dropout": 0.3, "num_labels": 4}, heads.MultipleChoice(), {"dropout": 0.3, "dense_dim": 4}),
)

# facebookresearch/XLM; transformers has the deviation of 2048 dimensions for every size.
SPREADS = {"embed/.*": lambda config: config["emb_dim"] ** -0.5}

COUNTS = {
    "xlm-mlm-tlm-xnli15-1024": (248_976_384, 249_071_384),
    "xlm-mlm-100-1280": (571_496_960, 571_696_960),
}
