"""Translations of WMT in T5's text-to-text form, from TFDS or from a user's files.

    wmt_t2t_ende   translate English to German: ... as tensor2tensor collected it, T5's   4,592,289 pairs
    wmt14_ende     WMT 2014's English to German                                           4,508,785
    wmt14_enfr     WMT 2014's English to French                                          40,836,715
    wmt15_enfr     WMT 2015's English to French, T5's                                    40,853,298
    wmt16_enro     WMT 2016's English to Romanian, T5's                                     610,320
    wmt19_ende     WMT 2019's English to German                                          38,690,334

and each the other way (wmt14_deen, wmt16_roen, ...), which T5 does not learn.

Metrics: BLEU and chrF by sacrebleu, BLEU with international tokenisation as T5 reports it. Registering needs no
network; TFDS downloads the data when they are first read. Files for --data.files are jsonl, tsv or parquet with a
column for each language (en, de), or with both under "translation".

Reference: Raffel et al., arXiv:1910.10683, section 2.3 and appendix D.16 to D.18; Bojar et al., "Findings of the 2014
Workshop on Statistical Machine Translation", https://aclanthology.org/W14-3302.
"""

from t2t.data import supervised
from t2t.data.written_texts import Translation
from t2t.train import answer_metrics

SPLITS = ("train", "validation", "test")

PAIRS = {
    "wmt_t2t": ("wmt_t2t_translate", "de", (4592289, 3000, 3003)),
    "wmt14_de": ("wmt14_translate", "de", (4508785, 3000, 3003)),
    "wmt14_fr": ("wmt14_translate", "fr", (40836715, 3000, 3003)),
    "wmt15_fr": ("wmt15_translate", "fr", (40853298, 4503, 1500)),
    "wmt16_ro": ("wmt16_translate", "ro", (610320, 1999, 1999)),
    "wmt19_de": ("wmt19_translate", "de", (38690334, 2998)),
}
"""TFDS's name, the language beside English, and numbers of examples."""

for _key, (_tfds, _language, _numbers) in PAIRS.items():
    _splits = SPLITS[: len(_numbers)]
    _year = _key.removesuffix(f"_{_language}")
    for _source, _target in (("en", _language), (_language, "en")):
        supervised.add(
            f"{_year}_{_source}{_target}",
            supervised.tfds(f"{_tfds}/{_language}-en:1.0.0", _splits),
            supervised.Format(examples=Translation(source=_source, target=_target)),
            metric_fns=[answer_metrics.translation],
            num_examples=dict(zip(_splits, _numbers, strict=True)),
        )
