"""Tokens with a label each: named entities of CoNLL-2003, parts of speech of Universal Dependencies.

    conll2003_ner   ner: EU rejects German call -> B-ORG O B-MISC O     14,042 / 3,251 / 3,454 sentences
    ud_TREEBANK     pos: What if Google Morphed -> PRON SCONJ PROPN VERB

Treebanks are those of TFDS's universal_dependencies that have training, development and test sentences, such as
ud_en_ewt, ud_de_gsd, ud_fr_gsd, ud_es_ancora (`TREEBANKS`).

Metrics: precision, recall and F1 of entities by seqeval, accuracy of parts of speech; with both, how many sentences got
another number of labels than they have tokens, and how many predictions are no label.

Registering needs no network; TFDS downloads the data when they are first read. Files for --data.files: CoNLL's columns
(the token first, the entity last), CoNLL-U.

Reference: Tjong Kim Sang and De Meulder, arXiv:cs/0306050; Nivre et al., "Universal Dependencies v2", arXiv:2004.10643.
"""

import functools

from t2t.data import official_files, supervised, tagging
from t2t.train import tag_metrics

TREEBANKS = (
    "ar_padt", "cs_pdt", "de_gsd", "en_ewt", "en_gum", "es_ancora", "es_gsd", "et_edt", "fi_tdt", "fr_gsd", "hi_hdtb",
    "it_isdt", "ja_gsd", "ko_gsd", "nl_alpino", "pl_pdb", "pt_bosque", "ro_rrt", "ru_syntagrus", "sv_talbanken",
    "tr_imst", "uk_iu", "vi_vtb", "zh_gsd",
)  # fmt: skip

supervised.add(
    "conll2003_ner",
    supervised.tfds("conll2003/conll2003:1.0.0", {"train": "train", "validation": "dev", "test": "test"}),
    supervised.Format(
        examples=tagging.TaggedTokens(name="ner", field="ner", labels=tagging.NER_LABELS),
        rows=functools.partial(official_files.conll, columns={"tokens": 0, "ner": -1}),
    ),
    metric_fns=[tag_metrics.entities(tagging.NER_LABELS)],
    postprocess_fn=tagging.as_tags,
    num_examples={"train": 14042, "validation": 3251, "test": 3454},
    local={"train": "conll2003/eng.train", "validation": "conll2003/eng.testa", "test": "conll2003/eng.testb"},
)

for _treebank in TREEBANKS:
    supervised.add(
        f"ud_{_treebank}",
        supervised.tfds(
            f"universal_dependencies/{_treebank}:1.0.1", {"train": "train", "validation": "dev", "test": "test"}
        ),
        supervised.Format(
            examples=tagging.TaggedTokens(name="pos", field="upos", labels=tagging.UPOS_LABELS),
            rows=functools.partial(official_files.conll, columns={"tokens": 1, "upos": 3}, universal=True),
        ),
        metric_fns=[tag_metrics.tags(tagging.UPOS_LABELS)],
        postprocess_fn=tagging.as_tags,
    )
