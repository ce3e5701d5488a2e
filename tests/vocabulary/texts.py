"""Lines on which tokenizers disagree."""

import functools

from tests.shared_data import shared_data

GOLDEN = (
    "Hello", " Hello", "Hello ", "a <mask> b", "a<mask>b", "[MASK]", "a[MASK]b", "   space   ",
    "  double  spaces  here ", "", " ", "\t tab\nnew line\r\n", "é café ﬁ ½ ①", "a\u0301 combining", "emoji 😀👍🏽",
    "日本語のテキスト", "한국어", "مرحبا",
    "[CLS] x [SEP]", "don't won't I'm", "1234567890 3.14 1,000", "https://x.y/z?a=b&c=d", "\u200b zero\u00a0width",
    "naïve ÅÄÖ İ ß", "x" * 300, "▁under ▁bar", "<|endoftext|>a<|endoftext|>", "<s>hi</s>", "A\u0000B", "tail\u2028line",
)  # fmt: skip

SENTINELS = (
    "<extra_id_0>. Hello", "I like <extra_id_0> and <extra_id_1>", "<extra_id_0>", "  <extra_id_99>ly  <extra_id_100>",
    "Hello <extra_id_0>, world<", "<extra_id_> <extra_id_x> <extra_id", "\n<extra_id_3>\n", "<extra_id_0> <extra_id_1>",
)  # fmt: skip


@functools.cache
def varied_lines() -> tuple[str, ...]:
    """Some 3,000 lines of prose, encyclopedia and sentence pairs in many languages, without <unk>, and the above."""
    lines = []
    for parts in (("wikitext2_heldout", "valid.txt"), ("books_en", "valid-00.txt")):
        lines += shared_data(*parts).read_text(encoding="utf-8").splitlines()[:1200]
    for path in sorted(shared_data("tatoeba").glob("tatoeba.*"))[:60]:
        lines += path.read_text(encoding="utf-8").splitlines()[:20]
    return tuple(line for line in lines if "<unk>" not in line) + GOLDEN
