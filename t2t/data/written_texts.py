r"""Texts to be written: translations and summaries, as T5 asks for them.

    translate English to German: That is good.     ->     Das ist gut.
    summarize: a long article                      ->     its highlights

Reference: Raffel et al., arXiv:1910.10683, appendix D.14 and D.16 to D.18.
"""

import dataclasses

from t2t.data.official_files import Example, Row
from t2t.errors import UsageError

LANGUAGES = {
    "ar": "Arabic",
    "cs": "Czech",
    "de": "German",
    "en": "English",
    "es": "Spanish",
    "et": "Estonian",
    "fi": "Finnish",
    "fr": "French",
    "gu": "Gujarati",
    "hi": "Hindi",
    "it": "Italian",
    "kk": "Kazakh",
    "lt": "Lithuanian",
    "lv": "Latvian",
    "ro": "Romanian",
    "ru": "Russian",
    "tr": "Turkish",
    "zh": "Chinese",
}
"""English names of languages by their code."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Translation:
    """Rows with a text in each language, or with both under "translation".

    Example:
        >>> Translation(source="en", target="de")({"en": "That is good.", "de": "Das ist gut."}, "train")
        [{'inputs': 'translate English to German: That is good.', 'targets': 'Das ist gut.'}]
    """

    source: str
    """Code of the language to translate from, a key of `LANGUAGES`."""
    target: str
    """Code of the language to translate to."""

    def __post_init__(self):
        """Refuse languages without a name."""
        for code in (self.source, self.target):
            if code not in LANGUAGES:
                raise ValueError(f"language {code!r} has no name here; known are {', '.join(LANGUAGES)}")

    def __call__(self, row: Row, split: str) -> list[Example]:
        """The example of a row."""
        texts = row.get("translation", row)
        asked = f"translate {LANGUAGES[self.source]} to {LANGUAGES[self.target]}: "
        return [{"inputs": asked + texts[self.source], "targets": texts[self.target]}]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Summary:
    """Rows with a text and its summary.

    Example:
        >>> Summary(text="article", summary="highlights")({"article": "A long one.", "highlights": "One."}, "train")
        [{'inputs': 'summarize: A long one.', 'targets': 'One.'}]
    """

    text: str
    """Field of the text."""
    summary: str
    """Field of the summary; of several the first is learned."""

    def __call__(self, row: Row, split: str) -> list[Example]:
        """The example of a row."""
        summary = row[self.summary]
        if isinstance(summary, list):
            if not summary:
                raise UsageError(f"{self.summary} is an empty list; a summary is needed")
            summary = summary[0]
        text = row[self.text]
        return [{"inputs": f"summarize: {' '.join(text) if isinstance(text, list) else text}", "targets": summary}]
