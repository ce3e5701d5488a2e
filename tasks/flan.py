r"""Instructions in the manner of FLAN on public data sets: ten wordings of each kind, with and without examples.

    flan_NAME_zero_shot   flan_NAME_few_shot   flan_NAME_inverted (where a turned-around task makes sense)

    inference     rte, mnli, cb, wnli         paraphrase   mrpc, qqp
    sentiment     sst2, imdb                  topics       ag_news
    yes or no     boolq                       reading      squad
    causes        copa                        closed book  natural_questions
    summaries     cnn_dailymail, xsum         translation  wmt16_enro, wmt14_ende, wmt14_enfr

    flan            all of them, proportional to their examples, each counting for at most 3,000
    flan_zero_shot  those without solved examples

Wordings are t2t's own, in FLAN's manner: a question, the possible answers as a list in half of them. Answers are words
("yes", "no", "it is not possible to tell"), not T5's label strings. Few-shot prompts hold up to two solved examples of
training and at most `MAX_CHARACTERS`. Metrics: accuracy, exact match and F1, ROUGE, BLEU and chrF.

Differs: FLAN's 62 data sets and its own wordings are google-research/FLAN's; these are 18 that TFDS has. Any other is
added by `templates.add_templates`, files by --data.files.

Reference: Wei et al., "Finetuned Language Models Are Zero-Shot Learners", arXiv:2109.01652, sections 2.1 to 2.3;
Longpre et al., "The Flan Collection", arXiv:2301.13688.
"""

import dataclasses
import importlib
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from t2t.data import labelled_texts, mixing, registry, supervised, templates
from t2t.data.examples import get_task
from t2t.data.templates import Template
from t2t.train import answer_metrics, text_metrics

for _module in ("glue", "super_glue", "squad", "summarization", "wmt", "closed_book", "text_classification"):
    importlib.import_module(f"tasks.{_module}")

MIXTURE_CAP = 3000
"""Examples that a task of the mixture counts for at most, as in FLAN."""

MAX_CHARACTERS = 6000
"""Of a few-shot prompt: some 1,500 tokens."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fields:
    """Rows as the fields of templates: some texts under their names here, and the answer in words.

    Example:
        >>> fields = Fields(names=(("text", "sentence"),), labels=("negative", "positive"), words=("bad", "good"))
        >>> fields({"sentence": "Fine.", "label": 1}, "train")
        [{'inputs': '', 'targets': 'good', 'text': 'Fine.'}]
    """

    names: tuple[tuple[str, str], ...]
    """Name in templates and field of rows."""
    labels: tuple[str, ...]
    words: tuple[str, ...]
    """What stands for each label."""

    def __call__(self, row: supervised.Row, split: str) -> list[supervised.Example]:
        """The fields of a row; rows without a label are left out."""
        label = labelled_texts.label_id(row.get("label"), self.labels)
        if label == labelled_texts.NO_LABEL:
            return []
        return [{"inputs": "", "targets": self.words[label], **{new: row[old] for new, old in self.names}}]


def _worded(questions: Sequence[str]) -> tuple[Template, ...]:
    """Templates of these questions, every second with the possible answers."""
    listed = [f"{text}\n{{options}}" if place % 2 else text for place, text in enumerate(questions)]
    ends = itertools.cycle(("\n", "\nAnswer: ", "\n\n"))
    return tuple(Template(inputs=text, between=end) for text, end in zip(listed, ends, strict=False))


def _free(questions: Sequence[str]) -> tuple[Template, ...]:
    ends = itertools.cycle(("\n", "\nAnswer: ", "\n\n"))
    return tuple(Template(inputs=text, between=end) for text, end in zip(questions, ends, strict=False))


CLAIM = (
    "{premise}\n\nDoes this mean that the following is true? {hypothesis}",
    'Read this text: {premise}\n\nIs the claim "{hypothesis}" right by it?',
    "Premise: {premise}\nHypothesis: {hypothesis}\nDoes the premise entail the hypothesis?",
    "{premise}\nFrom that alone, can one conclude that {hypothesis}",
    "Text: {premise}\n\nStatement: {hypothesis}\n\nIs the statement supported by the text?",
    "Suppose that this holds: {premise}\nThen, is it so? {hypothesis}",
    "Here is what we know. {premise}\nHere is a guess. {hypothesis}\nDoes the guess follow?",
    'If someone told you "{premise}", would you believe "{hypothesis}"?',
    "Judge the second sentence by the first.\n1. {premise}\n2. {hypothesis}\nIs it true?",
    "{hypothesis}\nDoes the passage below say so?\n\n{premise}",
)
SENTIMENT = (
    "{text}\n\nIs this good or bad, in the writer's eyes?",
    "A viewer wrote: {text}\nWhat does the viewer think of the film?",
    "Review: {text}\nSentiment:",
    "{text}\nWould you say that the writer liked it?",
    "Decide how this review feels.\n\n{text}",
    "What is the mood of the following? {text}",
    "Read the review and name its sentiment.\n{text}",
    '"{text}" - is that praise or blame?',
    "The critic's words: {text}\nThe critic's verdict:",
    "{text}\n\nTell how the author feels about the film.",
)
PARAPHRASE = (
    "{first}\n{second}\nDo both say the same?",
    "Sentence 1: {first}\nSentence 2: {second}\nAre they paraphrases of each other?",
    "Compare these two.\n- {first}\n- {second}\nIs the meaning equal?",
    'Could one write "{second}" in place of "{first}"?',
    "{first}\n\nIs that another way to put this? {second}",
    "Here are two texts.\n\n{first}\n\n{second}\n\nDo they mean one thing?",
    'Does "{first}" ask or tell the same as "{second}"?',
    "Two people wrote this.\nA: {first}\nB: {second}\nDid they mean the same?",
    "Text: {first}\nOther text: {second}\nAre the texts equivalent?",
    "Say whether the second repeats the first.\n1) {first}\n2) {second}",
)
TOPIC = (
    "{title}\n\n{text}\n\nWhat is this news about?",
    "Which section of a newspaper would print this?\n{title}\n{text}",
    "Headline: {title}\nArticle: {text}\nTopic:",
    "{text}\nName the topic of this report.",
    "Sort this report into a section.\n\n{title}: {text}",
    'What kind of news is "{title}"?\n{text}',
    "News: {title}. {text}\nThe section is",
    "Read the article and choose its subject.\n{title}\n\n{text}",
    "An editor received this: {text}\nTo which desk does it go?",
    "{title} - {text}\n\nWorld, sports, business or science?",
)
YES_NO = (
    "{passage}\n\n{question}?",
    "Passage: {passage}\nQuestion: {question}?\nYes or no:",
    "Answer from the text.\n\n{passage}\n\nIs it so that {question}?",
    "{question}? Look it up here: {passage}",
    "Read this.\n{passage}\nNow answer: {question}?",
    "Text:\n{passage}\n\nBy the text, {question}?",
    "Use the passage to decide: {question}?\n\n{passage}",
    "Someone asks: {question}? You have read: {passage}",
    "{passage}\nBased on the above, {question}?",
    "Here is a page of an encyclopedia. {passage}\nWhat does it say to this question: {question}?",
)
CAUSE = (
    "{premise}\nWhat is the {question} of that?\n- {choice1}\n- {choice2}",
    "Choose the more likely {question}.\n{premise}\n1. {choice1}\n2. {choice2}",
    '{premise} Which sentence tells its {question}: "{choice1}" or "{choice2}"?',
    'Of two sentences one is the {question} of "{premise}".\n{choice1}\n{choice2}',
    "Situation: {premise}\nIts {question} is one of these.\n(a) {choice1}\n(b) {choice2}",
    "Find the {question}: {premise}\nOptions: {choice1} / {choice2}",
    '"{premise}" Name the {question}.\n- {choice1}\n- {choice2}',
    "Which of both is the {question}? {choice1} Or: {choice2}\nThis happened: {premise}",
    "I know that {premise} I look for the {question}.\n* {choice1}\n* {choice2}",
    "Pick one as {question} of the event.\nEvent: {premise}\n- {choice1}\n- {choice2}",
)
READING = (
    "{context}\n\n{question}",
    "Read this and answer the question.\n\n{context}\n\n{question}",
    "Passage: {context}\nQuestion: {question}",
    "Find the answer in the text.\nText: {context}\nQuestion: {question}",
    "{question}\nThe answer stands here: {context}",
    "Answer briefly, with words of the passage.\n{context}\n{question}",
    "An article says: {context}\n\nA reader asks: {question}",
    "What does the text say to this question? {question}\n\n{context}",
    "Context:\n{context}\n\nQ: {question}",
    "Use the following paragraph. {context} {question}",
)
RECALL = (
    "{question}?",
    "Question: {question}?",
    "Answer this: {question}?",
    "What would an encyclopedia say? {question}?",
    "Please tell me, {question}?",
    "Q: {question}?",
    "Answer in a few words: {question}?",
    "A quiz asks: {question}?",
    "Do you know {question}?",
    "From what you have learned: {question}?",
)
SUMMARY = (
    "{text}\n\nSum this up.",
    "Write the main points of this article.\n\n{text}",
    "Article: {text}\n\nSummary:",
    "{text}\nIn short:",
    "Tell in a few sentences what this says.\n{text}",
    "Make a summary of the following report.\n\n{text}",
    "What is the gist of this? {text}",
    "Read the news below and write what matters.\n\n{text}",
    "News: {text}\nThe highlights:",
    "Shorten this for a reader in a hurry.\n{text}",
)
TRANSLATION = (
    "{source}\n\nTranslate this to {language}.",
    "How does one say this in {language}? {source}",
    "English: {source}\n{language}:",
    "Translate the sentence from English to {language}: {source}",
    "Write in {language} what this says.\n{source}",
    "Please give me the {language} for: {source}",
    "{source} - in {language}, that is",
    "A friend reads only {language}. Tell the friend: {source}",
    "Sentence: {source}\nTranslation to {language}:",
    'What is the {language} version of "{source}"?',
)

ACCURACY = (text_metrics.accuracy,)
YES, NO, PERHAPS = "yes", "no", "it is not possible to tell"
THREE_WAY = (("entailment", YES), ("neutral", PERHAPS), ("contradiction", NO))
CLAIM_NAMES = (("premise", "premise"), ("hypothesis", "hypothesis"))
SENTENCE_NAMES = (("premise", "sentence1"), ("hypothesis", "sentence2"))


def _labelled(names: Sequence[tuple[str, str]], words: Sequence[tuple[str, str]]) -> Fields:
    """Fields of rows with labels; `words` are pairs of a label, in the order of ids, and its word."""
    labels, spoken = zip(*words, strict=True)
    return Fields(names=tuple(names), labels=labels, words=spoken)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Texts:
    """Rows as the fields of templates where the answer is free text."""

    names: tuple[tuple[str, str], ...]
    answer: str
    language: str | None = None

    def __call__(self, row: supervised.Row, split: str) -> list[supervised.Example]:
        """The fields of a row; rows without an answer are left out."""
        answer: Any = row[self.answer]
        answer = answer["text"] if isinstance(answer, dict) else answer
        answer = (answer or [""])[0] if isinstance(answer, list) else answer
        fixed = {} if self.language is None else {"language": self.language}
        made = {"inputs": "", "targets": answer, **{new: row[old] for new, old in self.names}, **fixed}
        return [made] if answer else []


@dataclasses.dataclass(frozen=True, kw_only=True)
class Choices:
    """COPA's rows, whose answer is the text of one of two choices."""

    def __call__(self, row: supervised.Row, split: str) -> list[supervised.Example]:
        """The fields of a row; rows without a label are left out."""
        label = labelled_texts.label_id(row.get("label"), ("choice1", "choice2"))
        texts = {name: row[name] for name in ("premise", "choice1", "choice2", "question")}
        answer = texts["choice2" if label else "choice1"]
        return [] if label == labelled_texts.NO_LABEL else [{"inputs": "", "targets": answer, **texts}]


BOTH = (("first", "sentence1"), ("second", "sentence2"))
SENTIMENT_INVERTED = (Template(inputs="Write a review that is {targets}.", targets="{text}"),)

# Name: the task whose rows it reads, what makes fields of them, wordings, metrics, wordings turned around.
Kind = tuple[str, Callable[..., Any], Sequence[str], tuple[Callable[..., Any], ...], tuple[Template, ...]]
TASKS: dict[str, Kind] = {
    "rte": ("glue_rte", _labelled(SENTENCE_NAMES, (("entailment", YES), ("not_entailment", NO))), CLAIM, ACCURACY, ()),
    "wnli": (
        "glue_wnli", _labelled(SENTENCE_NAMES, (("not_entailment", NO), ("entailment", YES))), CLAIM, ACCURACY, (),
    ),
    "mnli": ("glue_mnli", _labelled(CLAIM_NAMES, THREE_WAY), CLAIM, ACCURACY, ()),
    "cb": (
        "super_glue_cb", _labelled(CLAIM_NAMES, (THREE_WAY[0], THREE_WAY[2], THREE_WAY[1])), CLAIM, ACCURACY, (),
    ),
    "sst2": (
        "glue_sst2", _labelled((("text", "sentence"),), (("negative",) * 2, ("positive",) * 2)), SENTIMENT, ACCURACY,
        SENTIMENT_INVERTED,
    ),
    "imdb": (
        "imdb", _labelled((("text", "text"),), (("negative",) * 2, ("positive",) * 2)), SENTIMENT, ACCURACY,
        SENTIMENT_INVERTED,
    ),
    "mrpc": ("glue_mrpc", _labelled(BOTH, (("not_equivalent", NO), ("equivalent", YES))), PARAPHRASE, ACCURACY, ()),
    "qqp": (
        "glue_qqp",
        _labelled((("first", "question1"), ("second", "question2")), (("not_duplicate", NO), ("duplicate", YES))),
        PARAPHRASE, ACCURACY, (),
    ),
    "ag_news": (
        "ag_news",
        _labelled(
            (("title", "title"), ("text", "description")),
            (("World", "world"), ("Sports", "sports"), ("Business", "business"), ("Sci/Tech", "science")),
        ),
        TOPIC, ACCURACY, (Template(inputs="Write a short report for this section: {targets}", targets="{text}"),),
    ),
    "boolq": (
        "super_glue_boolq",
        _labelled((("passage", "passage"), ("question", "question")), (("False", NO), ("True", YES))),
        YES_NO, ACCURACY, (),
    ),
    "copa": ("super_glue_copa", Choices(), CAUSE, ACCURACY, ()),
    "squad": (
        "squad", Texts(names=(("context", "context"), ("question", "question")), answer="answers"), READING,
        (text_metrics.squad,),
        (Template(inputs="{context}\n\nAsk a question whose answer is: {targets}", targets="{question}"),),
    ),
    "natural_questions": (
        "natural_questions_closed_book", Texts(names=(("question", "question"),), answer="answer"), RECALL,
        (text_metrics.squad,),
        (Template(inputs="To which question is this an answer? {targets}", targets="{question}"),),
    ),
    "cnn_dailymail": (
        "cnn_dailymail", Texts(names=(("text", "article"),), answer="highlights"), SUMMARY,
        (text_metrics.rouge_bootstrap,),
        (Template(inputs="Write the article of which this is the summary: {targets}", targets="{text}"),),
    ),
    "xsum": (
        "xsum", Texts(names=(("text", "document"),), answer="summary"), SUMMARY, (text_metrics.rouge_bootstrap,),
        (Template(inputs="Write the article that says in short: {targets}", targets="{text}"),),
    ),
    **{
        name: (
            name, Texts(names=(("source", "en"),), answer=code, language=language), TRANSLATION,
            (answer_metrics.translation,),
            (Template(inputs="Translate from {language} to English: {targets}", targets="{source}"),),
        )
        for name, code, language in (
            ("wmt16_enro", "ro", "Romanian"), ("wmt14_ende", "de", "German"), ("wmt14_enfr", "fr", "French"),
        )
    },
}  # fmt: skip


def _fields_of(examples: Any) -> tuple[str, ...]:
    """Names of the fields that a function gives beside inputs and targets."""
    if isinstance(examples, Choices):
        return ("premise", "choice1", "choice2", "question")
    language = ("language",) if getattr(examples, "language", None) else ()
    return (*(new for new, _ in examples.names), *language)


_names = []
for _name, (_base, _examples, _questions, _metrics, _inverted) in TASKS.items():
    _source = get_task(_base).source
    _words = tuple(dict.fromkeys(getattr(_examples, "words", ())))
    _names += templates.add_templates(
        f"flan_{_name}",
        supervised.SupervisedSource(
            _source.source,
            supervised.Format(
                examples=_examples, extras=dict.fromkeys(_fields_of(_examples), "text"), rows=_source.form.rows
            ),
            num_examples=_source.num_examples,
            local=_source.local,
        ),
        templates=_worded(_questions) if _words else _free(_questions),
        inverted=_inverted,
        options=_words,
        max_characters=MAX_CHARACTERS,
        metric_fns=_metrics,
    )
registry.add_mixture("flan", {name: mixing.ExampleCount(maximum=MIXTURE_CAP) for name in _names})
registry.add_mixture(
    "flan_zero_shot",
    {name: mixing.ExampleCount(maximum=MIXTURE_CAP) for name in _names if name.endswith("_zero_shot")},
)
