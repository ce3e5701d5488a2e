"""SQuAD and XQuAD in T5's text-to-text form, from TFDS or from SQuAD's JSON files.

    squad             SQuAD 1.1: question: ... context: ... -> the answer, punctuation set apart by spaces
    squad_v2          SQuAD 2.0: questions without an answer have the target "unanswerable" (T5 has no such task)
    squad_mt5         SQuAD 1.1 in mT5's form, to be learned for XQuAD: signs of every script set apart
    xquad_LANGUAGE    XQuAD, 1,190 questions in each of 11 languages, for evaluation alone (validation and test are one)

    xquad_zero_shot   squad_mt5; evaluate.tasks names the languages

Metrics: exact match and F1, the best of all answers; SQuAD 2.0 besides of questions with and without an answer.

Registering needs no network. TFDS downloads the data when they are first read, unless they are in corpora/squad
(T2T_CORPORA names another place of corpora): train-v1.1.json, dev-v2.0.json, and so on. Single files are read by
--data.files.

Reference: Rajpurkar et al., arXiv:1606.05250 and arXiv:1806.03822; Artetxe et al., "On the Cross-lingual
Transferability of Monolingual Representations", arXiv:1910.11856; Raffel et al., arXiv:1910.10683; Xue et al.,
arXiv:2010.11934.
"""

import functools

from t2t.data import official_files, questions, registry, supervised
from t2t.train import answer_metrics, text_metrics

LANGUAGES = ("ar", "de", "el", "en", "es", "hi", "ru", "th", "tr", "vi", "zh")
EXTRAS = {"answers": "texts", "id": "text"}
TRAINED = ("train", "validation")


def form(**settings) -> supervised.Format:
    """Questions about passages; `settings` of `questions.passage_question`."""
    examples = functools.partial(questions.passage_question, **settings) if settings else questions.passage_question
    return supervised.Format(examples=examples, extras=EXTRAS, rows=official_files.squad)


def files(version: str) -> dict[str, str]:
    """SQuAD's files of a version."""
    return {"train": f"squad/train-v{version}.json", "validation": f"squad/dev-v{version}.json"}


for _name, _version, _form, _metric, _numbers in (
    ("squad", "1.1", form(), text_metrics.squad, (87599, 10570)),
    ("squad_v2", "2.0", form(), answer_metrics.squad_v2, (130319, 11873)),
    ("squad_mt5", "1.1", form(pad=questions.pad_signs), text_metrics.squad, (87599, 10570)),
):
    supervised.add(
        _name,
        supervised.tfds(f"squad/v{_version}:3.0.0", TRAINED),
        _form,
        metric_fns=[_metric],
        postprocess_fn=questions.all_answers,
        num_examples=dict(zip(TRAINED, _numbers, strict=True)),
        local=files(_version),
    )

for _language in LANGUAGES:
    supervised.add(
        f"xquad_{_language}",
        supervised.tfds(f"xquad/{_language}:3.0.0", {"validation": "test", "test": "test"}),
        form(pad=questions.pad_signs),
        metric_fns=[text_metrics.squad],
        postprocess_fn=questions.all_answers,
        num_examples={"validation": 1190, "test": 1190},
        local=dict.fromkeys(("validation", "test"), f"xquad/xquad.{_language}.json"),
    )

registry.add_mixture("xquad_zero_shot", {"squad_mt5": 1.0})
