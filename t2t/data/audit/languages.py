"""The language of a text, told by its script and by the most frequent words of languages that share one.

A language that has a script of its own is told by its letters, Japanese by its kana. Latin, Cyrillic and Arabic letters
are shared: there the language is the one whose frequent words make up most of the text, if they make up a twelfth of it
and are two at least. That is right for running text of some sentences, and says "und" (undetermined) of names, tables,
source code and languages that are not here. Close relatives (Danish and Norwegian) are taken for each other at times.

Codes are those of BCP 47. The words are few on purpose: what a language cannot do without.
"""

import functools
import unicodedata
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int, UInt8, UInt32, UInt64

from t2t.data.audit import units as units_lib
from t2t.data.audit.units import Ragged
from t2t.data.documents import ranges

UNDETERMINED = "und"

FREQUENT_WORDS = {
    "af": "die en van is het nie wat dit vir in word hy op om hulle ons jou sal ook deur met aan ek jy sy was hom as",
    "ca": "de la el que en els per amb del les un una és no al més com són seva dels està va això hi ho també jo molt",
    "cs": "se na je že do to pro jako by ale jsou který jeho nebo podle má být také co si jsem ten už tak není po jak",
    "da": "og at det er en til af på med for den de ikke der eller blev skal alle bør jeg du hun mod efter mig uden",
    "de": "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es sind hat ich sie",
    "en": "the of and to in is that for it as was with be by on not he his are this or at from have which you my we",
    "es": "de la que el en los se del las un por con no una su para es al lo como más este yo me muy pero está mi le",
    "et": "ja on ei et kui ta oli see mis aga ka selle nende olema kõik või oma nad ning siis pole ma sa mind teda",
    "eu": "eta da ez bat dute ere du izan dira egin beste den edo baina dituzte bere duen hau zen dut nire zuen dago",
    "fi": "ja on ei että se oli kun hän mutta myös ovat ole tai joka sen kaikki niin mukaan hänen kuin minä en olen",
    "fr": "de la le et les des en un du une que est pour qui dans par plus pas au sur ne se ce il sont je vous nous",
    "gl": "de que do da en os un para unha as por non no na dos co se ao máis como seu eu está moi pola nas hai foi",
    "hr": "je se na da za su od kao ne po to koji ili iz njihov sva svi biti ima što sam nije bio ja ti ga samo ako",
    "hu": "az és hogy nem is egy ez van de azt volt meg mint csak minden vagy kell aki amely már el ha még én nagyon",
    "id": "yang dan di dengan untuk dari ini itu pada dalam tidak adalah ke sebagai oleh akan juga mereka saya dia",
    "it": "di il la che in per un è del non una le con si da dei sono al della gli nel ha ogni alla lo mi io ma questo",
    "lt": "ir yra kad iš su tai kaip ar ne jis buvo apie visi turi jų savo bet už ji tik kuris po aš nėra tu mane jie",
    "lv": "un ir ka no ar uz par kas tas bet vai kā viņa nav arī pie visi savu to bija lai tikai es tu man viņš mēs",
    "nb": "og er det på en til av at med for de ikke den var skal alle bør eller jeg du hun mot etter meg uten",
    "nl": "de van het een en in is dat op te zijn met voor niet die aan er om ook als bij door heeft zich ik je hij",
    "pl": "na się są oni pod do nie to że jest jak od po ale dla przez jego lub oraz które co tym ja mnie był ma czy",
    "pt": "de que do da em um para é com não uma os no se na por mais as dos como são ao eu ele ela está muito você",
    "ro": "de și în la cu pe că nu din un se ce care este pentru sunt mai al le prin lor să am el ea fost dar ai mea",
    "sk": "sa na je že do to pre ako by ale sú ktorý jeho alebo podľa má byť čo som si nie keď ten už tak bol mi",
    "sl": "in je na se za da so ki pa ne tudi bi kot vsi ali ima imajo po svoje med biti sem to si ni bil kaj ga",
    "sq": "të në dhe që një për me nga është më janë ka si duhet ose nuk por këtë do unë ai ajo kjo jam kam",
    "sv": "och att det är en som på för av med den till de inte har ett om alla eller skall var bör jag du han hon vi",
    "sw": "ya na wa kwa ni za katika la cha kuwa wote kila au hii yake wao ambayo kama hiyo mimi yeye sana huyu",
    "tl": "ang ng sa mga na at ay may lahat kanilang isang hindi ito para siya kung nang din ako ko mo ka si niya",
    "tr": "ve bir bu da için ile de olarak çok daha ne gibi kadar olan ya her ama sonra ki ben bana onun değil var mi",
    "vi": "và của là có trong được cho các với những một không người đã này về để khi đều từ như tôi anh cô ấy bạn",
    "be": "у на з што не да для як гэта ён або па ад усе мае яны якія яго быў я мы ты вельмі няма гэтага",
    "bg": "и на да се в за от не е са с по като това че ще към или има те си ми той аз беше няма много",
    "kk": "және мен бұл үшін бір деп да де бар болып барлық оның немесе еді сол ол мен сен жоқ емес",
    "mk": "и на да се во за од не е со ги што како тоа сите или има треба беше јас тој ми сум нема многу",
    "ru": "и в не на с что он по как это из все но к у его за от для или они только я мы ты она был мне очень",
    "sr": "и у је се на да за су од са као не по то који или из сва бити има сам није био ја ти га само",
    "uk": "і в на з що не до та у як за це від або про його для всі вони є він я ми ти був мені дуже немає",
    "ar": "في من على أن إلى ما هذا التي عن مع لا كل كان هو وقد الذي جميع بين أو أنا هي لم يا لقد ليس",
    "fa": "و در به از که این را با است برای آن یک می هم بر تا هر خود اند من او ما نیست شما بود",
    "ur": "اور کے کی میں ہے کا سے کو نے پر یہ ہیں کہ اس ایک وہ تھا نہیں ہوں میرے مجھے",
}
"""Words that make up much of any text of a language, by its code."""

SCRIPTS = (
    "other", "Latin", "Greek", "Cyrillic", "Armenian", "Hebrew", "Arabic", "Devanagari", "Bengali", "Gurmukhi",
    "Gujarati", "Oriya", "Tamil", "Telugu", "Kannada", "Malayalam", "Sinhala", "Thai", "Lao", "Tibetan", "Myanmar",
    "Georgian", "Hangul", "Ethiopic", "Khmer", "Mongolian", "Kana", "Han",
)  # fmt: skip
"""Scripts by number."""

LANGUAGE_OF = {
    "Greek": "el", "Armenian": "hy", "Hebrew": "he", "Devanagari": "hi", "Bengali": "bn", "Gurmukhi": "pa",
    "Gujarati": "gu", "Oriya": "or", "Tamil": "ta", "Telugu": "te", "Kannada": "kn", "Malayalam": "ml",
    "Sinhala": "si", "Thai": "th", "Lao": "lo", "Tibetan": "bo", "Myanmar": "my", "Georgian": "ka", "Hangul": "ko",
    "Ethiopic": "am", "Khmer": "km", "Mongolian": "mn", "Kana": "ja", "Han": "zh",
}  # fmt: skip
"""The language that most text in a script is of."""

LANGUAGES = (UNDETERMINED, *FREQUENT_WORDS, *LANGUAGE_OF.values())
"""Codes by number."""

LEAST_SHARE = 1 / 12
LEAST_WORDS = 2

_NAMES = {"HIRAGANA": "Kana", "KATAKANA": "Kana", "CJK": "Han", "ETHIOPIC": "Ethiopic"}
_LAST = 0x33400


@functools.cache
def _scripts() -> UInt8[np.ndarray, " U"]:
    """The script of each code point by number, 255 for what is no letter."""
    numbers = {name.upper(): number for number, name in enumerate(SCRIPTS)}
    numbers |= {name: SCRIPTS.index(script) for name, script in _NAMES.items()}
    scripts = np.full(_LAST + 1, 255, np.uint8)
    for code in range(_LAST):
        if unicodedata.category(chr(code))[0] == "L":
            first = unicodedata.name(chr(code), "").partition(" ")[0].partition("-")[0]
            scripts[code] = numbers.get(first, 0)
    return scripts


def count_scripts(codes: UInt32[np.ndarray, " N"], offsets: Int[np.ndarray, " R"]) -> Int[np.ndarray, "D S"]:
    """How many letters of each script each text has, from the code points of all and where each text begins."""
    texts = len(offsets) - 1
    letters = np.concatenate([[0], np.cumsum((codes | 0x20) - 0x61 < 26)])  # of ASCII, which most text is
    others = np.flatnonzero(codes >= 0x80)
    owners = np.searchsorted(offsets, others, side="right") - 1
    scripts = _scripts()[np.minimum(codes[others], _LAST)]
    is_letter = scripts != 255
    flat = owners[is_letter] * len(SCRIPTS) + scripts[is_letter]
    counts = np.bincount(flat, minlength=texts * len(SCRIPTS)).reshape(texts, len(SCRIPTS))
    counts[:, SCRIPTS.index("Latin")] += letters[offsets[1:]] - letters[offsets[:-1]]
    return counts


@dataclass(frozen=True, kw_only=True)
class _Words:
    """Hashes of the frequent words of all languages, ascending, with the language each entry is of."""

    hashes: UInt64[np.ndarray, " W"]
    languages: Ragged


@functools.cache
def _words() -> _Words:
    entries = [(word, LANGUAGES.index(code)) for code, words in FREQUENT_WORDS.items() for word in set(words.split())]
    hashes = units_lib.hash_units([word for word, _ in entries]).values  # each is one unit
    numbers = np.array([number for _, number in entries], np.int64)
    order = np.lexsort((numbers, hashes))
    distinct, counts = np.unique(hashes, return_counts=True)
    return _Words(hashes=distinct, languages=Ragged.of(numbers[order], counts))


def count_frequent_words(units: Ragged) -> Int[np.ndarray, "D L"]:
    """How many frequent words of each language each text has."""
    words = _words()
    places = np.minimum(np.searchsorted(words.hashes, units.values), len(words.hashes) - 1)
    found = np.flatnonzero(words.hashes[places] == units.values)
    owners, places = units.owners[found], places[found]
    sizes = words.languages.sizes[places]
    entries = words.languages.values[ranges(words.languages.offsets[:-1][places], sizes)]
    number = len(units) * len(LANGUAGES)
    counts = np.bincount(np.repeat(owners, sizes) * len(LANGUAGES) + entries, minlength=number)
    return counts.reshape(len(units), len(LANGUAGES))


def tell_languages(units: Ragged, scripts: Int[np.ndarray, "D S"]) -> Int[np.ndarray, " D"]:
    """The number of each text's language among `LANGUAGES`, 0 = undetermined.

    Args:
        units: of the texts.
        scripts: letters of each script in them.
    """
    by_script = np.array([LANGUAGES.index(LANGUAGE_OF.get(name, UNDETERMINED)) for name in SCRIPTS])
    main = scripts.argmax(axis=1)
    kana, han = SCRIPTS.index("Kana"), SCRIPTS.index("Han")
    main = np.where((main == han) & (scripts[:, kana] * 10 > scripts[:, han]), kana, main)
    has_letters = scripts.any(axis=1)
    counts = count_frequent_words(units)
    best = counts.argmax(axis=1)
    most = counts.max(axis=1)
    is_told = (most >= LEAST_WORDS) & (most >= LEAST_SHARE * units.sizes)
    return np.where(~has_letters, 0, np.where(by_script[main] > 0, by_script[main], np.where(is_told, best, 0)))
