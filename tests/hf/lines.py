"""Varied and hostile lines of text, the same ones every time."""

import functools
import os
import pydoc_data.topics
import random
import unicodedata

SPACES = [" ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u3000", "\u2009", "\u200b", "\ufeff", "\u2028", "\u0085", "\x0b",
          "\x0c", "\u200d", "\u00ad", "\x00", "\x7f", "\u2581"]  # fmt: skip
"""Everything that is, or that programs take for, white space."""

RANGES = [(32, 127), (160, 0x250), (0x370, 0x600), (0x900, 0xA00), (0x1100, 0x1200), (0x3040, 0x3100),
          (0x4E00, 0x5000), (0xAC00, 0xAD00), (0xFF00, 0xFFEF), (0x2100, 0x2200), (0x1F300, 0x1F700)]  # fmt: skip

WORDS = ["Ångström", "naïve café", "Việt Nam", "ﬁn ﬂuﬀ", "①②Ⅷ", "ｆｕｌｌ ｗｉｄｔｈ", "한국어 텍스트", "हिन्दी भाषा",
         "ไทยภาษา", "العربية مَرْحَبًا", "עִבְרִית", "👨\u200d👩\u200d👧\u200d👦 🇩🇪 👍🏽", "x̄ ± σ²", "ｶﾞｷﾞ", "Ａ\u0301",
         "～", "…", "½", "ǅ", "ß"]  # fmt: skip


def corpus() -> list[str]:
    """Paragraphs of the Python language reference, which every Python holds."""
    paragraphs = (p for topic in pydoc_data.topics.topics.values() for p in topic.split("\n\n"))
    return [" ".join(p.split()) for p in paragraphs if p.strip()]


def varied(number: int, *, seed: int = 0, sentinels: int = 100) -> list[str]:
    """Real lines, odd spaces, random characters, composed and decomposed words, runs, sentinels and masks in text."""
    draw = random.Random(seed)
    text = corpus()
    words = text[0].split() + ["x"]

    def spaced() -> str:
        return "".join(draw.choice(SPACES) + draw.choice(words) for _ in range(draw.randint(1, 9))) + draw.choice(
            SPACES
        )

    def characters() -> str:
        return "".join(chr(draw.randrange(*draw.choice(RANGES))) for _ in range(draw.randint(1, 30)))

    def forms() -> str:
        kinds = ("NFD", "NFKD", "NFC", "NFKC")
        return " ".join(
            unicodedata.normalize(draw.choice(kinds), draw.choice(WORDS)) for _ in range(draw.randint(1, 4))
        )

    def runs() -> str:
        return "".join(draw.choice("aabc.=-_*#!eE01 ") * draw.randint(1, 12) for _ in range(draw.randint(1, 12)))

    def marked() -> str:
        marks = [f"<extra_id_{draw.randrange(sentinels + 5)}>", "<mask>", "<extra_id_>", "<extra_id_0", "<", ">"]
        glue = ["", " ", "  ", "\t", ".", ", "]
        return "".join(draw.choice([*marks, draw.choice(words)]) + draw.choice(glue) for _ in range(draw.randint(1, 9)))

    makers = [lambda: draw.choice(text), spaced, characters, forms, runs, marked]
    lines = [makers[i % len(makers)]() for i in range(number - 12)]
    return [*lines, "", " ", "\n", "   leading", "trailing   ", "a  b", "<extra_id_0>. Hello", "<extra_id_0>",
            " <mask> ", "jel<extra_id_1>ly", "<extra_id_0> <extra_id_1>", os.linesep.join(text[:3])]  # fmt: skip


SCRIPTS = [
    "漢字仮名交じり文、日本語。",
    "简体中文，繁體中文。",
    "ภาษาไทยไม่มีช่องว่าง",
    "مَرْحَبًا بالعالم، كيف الحال؟",
    "हिन्दी में क्‍या",
    "தமிழ் నమస్తే ಕನ್ನಡ",
    "ქართული ენა",
    "Ἀρχὴ ἥμισυ παντός ΣΟΦΟΣ",
    "Съешь ещё этих мягких булок",
    "שָׁלוֹם עוֹלָם",
    "ខ្មែរ မြန်မာ ລາວ",
    "한국어 한국어",
    "Íslenska það ðæ",
    "Tiếng Việt đẹp",
    "İstanbul ığdır",
    "Straße ẞ ŉ ǆ",
]
EMOJI = ["👩🏽‍🚀", "🏳️‍🌈", "1️⃣", "👨‍👩‍👧‍👦", "🇫🇷🇯🇵", "❤️", "☺︎", "🧑🏿‍🤝‍🧑🏻", "😀😀😀"]
CONTROLS = [*map(chr, range(1, 32)), "\x7f", *map(chr, range(0x80, 0xA0)), "\ufffd", "\ufffe", "\ufff9", "\ue000"]
INVISIBLE = ["\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u034f", "\u061c", "\u180e", "\ufe0f",
             "\u200e", "\u200f", "\u202a", "\u202b", "\u202c", "\u202d", "\u202e", "\u2066", "\u2067"]  # fmt: skip
MARKS = ["\u0301", "\u0323", "\u0327", "\u0308", "\u0345", "\u0591", "\u064b", "\u093c", "\u0e38", "\u20dd", "\u3099"]
ASTRAL = ["𝔘𝔫𝔦𝔠𝔬𝔡𝔢", "𝟘𝟙𝟚", "𠮷野家", "𐍈𐌰", "🅰🅱", "𝒳²", "\U000e0041", "\U00010ffd"]
COMPATIBLE = [
    "ﬀﬁﬂﬃﬄﬅ",
    "ＡＢｃ１２３！",
    "㍿㌔㎏",
    "①⑳Ⅻⅷ",
    "½⅓¾",
    "ﷺ",
    "ﾊﾝｶｸ",
    "™℠№℃",
    "…‥‼⁉",
    "x⁴₂",
    "'‘’\"“”„«»",
    "－–—−‐",
    "～˜∼",
    "¨´`^",
]
NUMBERS = [
    "1,234,567.89",
    "9,000,",
    "3.14e-10",
    "2024-01-31T23:59:59Z",
    "٣٤٥ १२३ ๑๒",
    "+49 (0)30/1234-56",
    "1 000 000",
    "0x1F",
    "12,a",
]


def hostile(number: int, *, names: tuple[str, ...] = (), seed: int = 1) -> list[str]:
    """Lines of what tokenizers stumble over, between words of many scripts.

    Args:
        number: of lines.
        names: special tokens that are written into some of them.
        seed: of the draws.
    """
    draw = random.Random(seed)
    text = corpus()
    words = [*" ".join(text[:40]).split(), *SCRIPTS, *WORDS]

    def mixed(odd: list[str], glue: list[str]) -> str:
        parts = (draw.choice(odd) if draw.random() < 0.5 else draw.choice(words) for _ in range(draw.randint(1, 10)))
        return "".join(part + draw.choice(glue) for part in parts)

    def marked() -> str:
        letters = (
            draw.choice("aeiouncAEZ漢अيו") + "".join(draw.choices(MARKS, k=draw.randint(0, 3))) for _ in range(9)
        )
        return "".join(draw.choice(MARKS + [" ", ""]) + letter for letter in letters)

    def long() -> str:
        return draw.choice(["a", "ab", "漢", "ü", "1", "-", "😀", "é́", "x\u200d"]) * draw.choice(
            [90, 99, 100, 101, 250]
        )

    def anywhere() -> str:
        codes = (draw.randrange(1, 0x30000) for _ in range(draw.randint(1, 20)))
        return "".join(chr(code) for code in codes if not 0xD800 <= code < 0xE000)

    glue = ["", " ", " ", "  ", "\t", "\n", " \u00a0", "\u3000"]
    makers = [
        lambda: mixed(CONTROLS, glue),
        lambda: mixed(INVISIBLE, ["", "", " "]),
        marked,
        lambda: mixed([unicodedata.normalize(draw.choice(["NFD", "NFKD"]), word) for word in SCRIPTS], glue),
        lambda: mixed(SCRIPTS, ["", " "]),
        lambda: mixed(EMOJI, glue),
        lambda: mixed(ASTRAL, glue),
        lambda: mixed(COMPATIBLE, glue),
        lambda: mixed(NUMBERS, glue),
        lambda: mixed([long()], [" ", ""]),
        anywhere,
        lambda: mixed([" ", "   ", "\t\t", "\n\n", "\r\n", "\u2028", "\u2003"], ["", " "]),
        lambda: draw.choice(text),
    ]
    if names:
        makers.append(lambda: mixed(list(names), ["", " ", "  ", ".", "\t"]))
    lines = [makers[i % len(makers)]() for i in range(number - 4)]
    return [*lines, "", " ", "\n", "\u200b"]


def has_several_accents(text: str) -> bool:
    """Whether combining characters follow each other in the text or in what its letters are made of."""
    marks = [unicodedata.combining(char) > 0 for char in unicodedata.normalize("NFKD", text)]
    return any(first and second for first, second in zip(marks, marks[1:], strict=False))


@functools.cache
def ten_thousand(*names: str) -> tuple[str, ...]:
    """Half of them varied and half hostile, with these special tokens in some of them."""
    return (*varied(5000), *hostile(5000, names=names))


def comparable(number: int) -> list[str]:
    """So many of them, none of which has 2,000 characters or more, or a letter of several accents."""
    found = [text for text in ten_thousand() if len(text) < 2000 and not has_several_accents(text)]
    return found[:: len(found) // number][:number]
