"""The page of an audit: its JSON as tables, plots and examples."""

from collections.abc import Mapping, Sequence
from typing import Any

from t2t.commands import page
from t2t.commands.page import Html, tag

FILES = 200
"""Files that are listed, the largest first."""

NAMES = 15
"""Languages and scripts that are shown, the most frequent first."""

LANGUAGES = {
    "af": "Afrikaans", "am": "Amharic", "ar": "Arabic", "be": "Belarusian", "bg": "Bulgarian", "bn": "Bengali",
    "bo": "Tibetan", "ca": "Catalan", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek", "en": "English",
    "es": "Spanish", "et": "Estonian", "eu": "Basque", "fa": "Persian", "fi": "Finnish", "fr": "French",
    "gl": "Galician", "gu": "Gujarati", "he": "Hebrew", "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian",
    "hy": "Armenian", "id": "Indonesian", "it": "Italian", "ja": "Japanese", "ka": "Georgian", "kk": "Kazakh",
    "km": "Khmer", "kn": "Kannada", "ko": "Korean", "lo": "Lao", "lt": "Lithuanian", "lv": "Latvian",
    "mk": "Macedonian", "ml": "Malayalam", "mn": "Mongolian", "my": "Burmese", "nb": "Norwegian", "nl": "Dutch",
    "or": "Odia", "pa": "Punjabi", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian",
    "si": "Sinhala", "sk": "Slovak", "sl": "Slovenian", "sq": "Albanian", "sr": "Serbian", "sv": "Swedish",
    "sw": "Swahili", "ta": "Tamil", "te": "Telugu", "th": "Thai", "tl": "Tagalog", "tr": "Turkish",
    "uk": "Ukrainian", "und": "undetermined", "ur": "Urdu", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip
"""Names of languages by code."""


def make(report: Mapping[str, Any]) -> str:
    """The page of a report, as `t2t.data.audit.report.Report.to_json` gives it."""
    return page.document(
        "Audit of a corpus",
        _overview(report),
        _lengths(report["corpus"]),
        _languages(report["corpus"]),
        _duplicates(report),
        [_evaluation(found, report["settings"]) for found in report["evaluation"]],
        _files(report["files"]),
    )


def _overview(report: Mapping[str, Any]) -> Html:
    corpus, copies = report["corpus"], report["duplicates"]
    number = corpus["documents"]
    rows: list[tuple[str, Any, str]] = [
        ("documents", number, ""),
        ("characters", corpus["characters"], ""),
        ("bytes of UTF-8", corpus["bytes"], ""),
        ("words", corpus["words"], "single characters where words have no spaces between them"),
        ("say what an earlier document says", copies["exact"] + copies["near"], _share(copies, number)),
        ("with text of an evaluation set", report["leaking"], f"{report['leaking'] / number:.2%} of all"),
        ("both together", report["dropped"], "listed in dropped.jsonl"),
        ("empty, left out", corpus["empty"], ""),
        ("unreadable, left out", corpus["unreadable"], ""),
        ("with the character U+FFFD", corpus["with_replacement_characters"], "something was not decoded"),
        ("with control characters", corpus["with_control_characters"], ""),
    ]
    return page.section("Overview", page.table(rows))


def _share(copies: Mapping[str, Any], number: int) -> str:
    return f"{(copies['exact'] + copies['near']) / number:.2%} of all"


def _lengths(corpus: Mapping[str, Any]) -> Html:
    words, characters = corpus["length_in_words"], corpus["length_in_characters"]
    names = ["mean", *(name for name in words if name not in ("mean", "from"))]
    rows = [
        ("words", *(words[name] for name in names), ""),
        ("characters", *(characters[name] for name in names), characters["longest"]),
    ]
    return page.section(
        "Lengths of documents",
        page.table(rows, head=["", *names, "longest"]),
        tag("p", "Documents by their number of words:", _class="dim"),
        page.bars(_ranges(words["from"]), shares=True),
    )


def _ranges(classes: Sequence[Sequence[int]]) -> list[tuple[str, int]]:
    """Names of classes that reach from a power of two to the next."""
    return [(f"{least:,}" if least < 2 else f"{least:,} to {2 * least - 1:,}", number) for least, number in classes]


def _languages(corpus: Mapping[str, Any]) -> Html:
    characters, documents = corpus["characters_by_language"], corpus["documents_by_language"]
    total = sum(characters.values())
    rows = [
        (LANGUAGES.get(code, code), code, documents[code], number, f"{number / total:.2%}")
        for code, number in characters.items()
        if code in documents
    ]
    return page.section(
        "Languages",
        tag(
            "p",
            "Told by scripts and frequent words: right for running text; names, tables and code are undetermined.",
            _class="dim",
        ),
        page.bars(_first({LANGUAGES.get(code, code): number for code, number in characters.items()}), shares=True),
        tag(
            "details",
            tag("summary", "documents and characters of each"),
            page.table(rows, head=["language", "code", "documents", "characters", "share"]),
        ),
        tag("h3", "Letters by script"),
        page.bars(_first(corpus["letters_by_script"]), shares=True),
    )


def _first(values: Mapping[str, int]) -> list[tuple[str, int]]:
    """The first of some numbers, and the sum of the rest."""
    pairs = list(values.items())
    rest = sum(number for _, number in pairs[NAMES:])
    return pairs[:NAMES] + ([(f"{len(pairs) - NAMES} more", rest)] if rest else [])


def _duplicates(report: Mapping[str, Any]) -> Html:
    found, settings = report["duplicates"], report["settings"]
    rows = [
        ("equal to an earlier document, but for white space around it", found["exact"]),
        (f"similar: {settings['similarity']:.0%} of the {settings['ngram']}-grams in common", found["near"]),
        ("characters of both", found["characters"]),
        ("clusters of documents that say the same", found["clusters"]),
    ]
    missed = f"A pair that is just similar enough is missed with a probability of {found['missed']:.0e}."
    return page.section(
        "Duplicates",
        page.table(rows),
        tag("p", "Similarities are computed from the texts, not estimated. ", missed, _class="dim"),
        [
            tag("p", "Clusters by their number of documents:", _class="dim"),
            page.bars(_ranges(found["cluster_sizes"])),
            tag("h3", "Largest clusters"),
        ]
        if found["clusters"]
        else None,
        map(_cluster, found["largest"]),
    )


def _cluster(cluster: Mapping[str, Any]) -> Html:
    copies = (
        tag("div", tag("span", f"{_place(copy['place'])}, {_kind(copy)}", _class="dim"), _text(copy["text"]))
        for copy in cluster["copies"]
    )
    return tag("div", tag("b", f"{cluster['documents']:,} documents"), copies, _class="card")


def _kind(copy: Mapping[str, Any]) -> str:
    return {"first": "the first", "exact": "equal"}.get(copy["kind"], f"similarity {copy['similarity']:.2f}")


def _place(place: Mapping[str, Any]) -> str:
    return f"{place['file']}, document {place['document']:,}"


def _text(text: str) -> Html:
    return tag("div", text, _class="text", dir="auto")


def _evaluation(found: Mapping[str, Any], settings: Mapping[str, Any]) -> Html:
    leaked = f"leaked: {settings['leak_share']:.0%} of the {settings['leak_ngram']}-grams, or more"
    rows = [
        ("documents", found["documents"]),
        ("looked for", found["looked_for"]),
        ("too short to be told from chance", found["short"]),
        ("repeated: an earlier one says the same", found["repeated"]),
        ("with nothing that tells them from a hundred others", found["common"]),
        ("something is in the corpus", found["touched"]),
        (leaked, found["leaked"]),
    ]
    tenths = [f"{k * 10} to {k * 10 + 10} %" for k in range(10)]
    return page.section(
        f"Evaluation set {found['name']}",
        page.table(rows),
        tag("p", "Documents by how much of them is in the corpus:", _class="dim"),
        page.bars(list(zip(tenths, found["coverage"], strict=True)), shares=True),
        map(_leak, found["examples"]),
    )


def _leak(leak: Mapping[str, Any]) -> Html:
    return tag(
        "div",
        tag("b", f"document {leak['document']:,}: {leak['coverage']:.0%} in the corpus"),
        _text(leak["text"]),
        tag("span", f"{leak['share']:.0%} of it in {_place(leak['place'])}:", _class="dim"),
        _text(leak["found"]),
        _class="card",
    )


def _files(files: Sequence[Mapping[str, Any]]) -> Html:
    largest = sorted(files, key=lambda file: (-file["characters"], file["file"]))[:FILES]
    head = ["file", "documents", "characters", "duplicates", "with text of an evaluation set"]
    return page.section(
        "Files",
        page.table(map(_file, largest), head=head),
        tag("p", f"{len(files) - FILES:,} smaller files are not listed.") if len(files) > FILES else None,
    )


def _file(file: Mapping[str, Any]) -> list[Any]:
    return [file[name] for name in ("file", "documents", "characters", "duplicates", "leaking")]
