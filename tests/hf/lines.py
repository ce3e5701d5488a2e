"""Varied and hostile lines of text, the same ones every time."""

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
