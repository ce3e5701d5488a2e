"""Pages: what texts hold stays text, nothing comes from outside, pictures are the matrices that they show."""

import base64
import html.parser
import re
import struct
import zlib

import numpy as np
import pytest

from t2t.commands import page
from t2t.commands.page import Html, tag
from t2t.errors import UsageError

HOSTILE = (
    "</div></style><script>alert(\"x\")</script><img src=http://x.example/a.png onerror='b'> & \x1b[31m\u202e\ud800"
)


class Elements(html.parser.HTMLParser):
    """The elements of a page, and its text."""

    def __init__(self, content: str):
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(content)
        self.close()

    def handle_starttag(self, name, attributes):
        self.tags.append((name, dict(attributes)))
        if name not in ("img", "meta"):
            self.open.append(name)

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, data):
        self.text += data


def check_self_contained(content: str) -> Elements:
    """No script, no address, every element closed; returns the elements."""
    found = Elements(content)
    assert not found.open
    assert {name for name, _ in found.tags} <= {
        "html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "b", "section", "table", "tr", "th",
        "td", "span", "div", "figure", "figcaption", "img", "details", "summary",
    }  # fmt: skip
    for _, attributes in found.tags:
        assert not {"href", "srcset", "onerror", "onload", "action"} & set(attributes)
        assert attributes.get("src", "data:image/png;base64,").startswith("data:image/png;base64,")
    styles = re.findall(r"<style>(.*?)</style>", content, flags=re.DOTALL)
    assert not any(word in style for style in styles for word in ("url(", "@import", "http"))
    assert "default-src 'none'" in content and "prefers-color-scheme: dark" in content
    content.encode("utf-8")
    return found


def test_hostile_texts_are_shown_and_do_nothing():
    body = [
        tag("p", HOSTILE, title=HOSTILE),
        page.table([[HOSTILE, 1, 0.25]], head=[HOSTILE]),
        page.bars({HOSTILE: 3}, shares=True),
        page.picture(np.eye(3, dtype=bool), caption=HOSTILE),
        page.section(HOSTILE),
    ]
    found = check_self_contained(page.document(HOSTILE, body))
    shown = HOSTILE.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e").replace("\ud800", "\\ud800")
    # In the title, the heading, the paragraph, head and cell of the table, the bar, the caption and the section.
    assert found.text.count(shown) == 8
    assert [attributes["title"] for name, attributes in found.tags if name == "p"] == [shown]


def test_lines_of_a_text_stay_lines():
    assert page.escape("a\n<b>\t") == "a\n&lt;b&gt;\\t"


def test_elements_in_elements():
    assert tag("p", ["a", None, (Html("<b>"), ["&"])], data_x=1, _class=None) == '<p data-x="1">a<b>&amp;</p>'


def test_tables_and_bars():
    content = page.table([["x", 1234, 0.123456, True]])
    assert content == (
        '<table><tr><td>x</td><td class="number">1,234</td><td class="number">0.1235</td><td>True</td></tr></table>'
    )
    content = page.bars([("a", 50), ("b", 0), ("c", 100)], shares=True)
    assert re.findall(r"width:([\d.]+)%", content) == ["50.00", "100.00"]
    assert re.findall(r">([\d.]+%)<", content) == ["33.3%", "0.0%", "66.7%"]
    assert page.bars([]) == '<table class="bars"></table>'


@pytest.mark.parametrize("shape", [(1, 1), (3, 9), (17, 8)])
def test_a_picture_is_its_matrix(shape):
    values = np.random.default_rng(0).random(shape) < 0.5
    found = Elements(page.picture(values, caption="who reads whom"))
    (attributes,) = [attributes for name, attributes in found.tags if name == "img"]
    content = base64.b64decode(attributes["src"].partition(",")[2])
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    chunks, place = {}, 8
    while place < len(content):
        (size,) = struct.unpack(">I", content[place : place + 4])
        kind, data = content[place + 4 : place + 8], content[place + 8 : place + 8 + size]
        assert struct.unpack(">I", content[place + 8 + size : place + 12 + size]) == (zlib.crc32(kind + data),)
        chunks[kind] = data
        place += 12 + size
    width, height, depth, colour_type = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert (height, width, depth, colour_type) == (*shape, 1, 3)
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, -1)
    assert not lines[:, 0].any()
    assert np.array_equal(np.unpackbits(lines[:, 1:], axis=1)[:, :width].astype(bool), values)
    assert int(attributes["width"]) / width == int(attributes["height"]) / height


def test_a_page_that_cannot_be_written(tmp_path):
    page.write(tmp_path / "a.html", "one")
    page.write(tmp_path / "a.html", "two")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["two"]
    with pytest.raises(UsageError, match="nowhere/a.html cannot be written"):
        page.write(tmp_path / "nowhere" / "a.html", "one")
