"""Pages of HTML that one file holds: no script, no address outside, nothing that a text in them can break.

Elements are made by `tag`, which escapes every string that is not `Html` already: a text of a corpus may hold anything.
Colours follow the reader's choice of light or dark.
"""

import base64
import html
import pathlib
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from t2t.commands.printing import printable
from t2t.errors import UsageError

STYLE = """
:root { color-scheme: light dark; --ink: #1c1c1e; --dim: #6a6a70; --paper: #fff; --card: #f4f4f6; --line: #d8d8de;
  --bar: #4a7fd4; --masked: #ffd9a8; --replaced: #ffc2c2; --kept: #cfe8cf; --predicted: #cfe8cf; --sentinel: #cfdcff;
  --mode: #e6d3ff; --special: #e6e6ea; }
@media (prefers-color-scheme: dark) { :root { --ink: #ececf0; --dim: #a0a0a8; --paper: #161618; --card: #222226;
  --line: #3c3c44; --bar: #6f9fe8; --masked: #6b4714; --replaced: #702a2a; --kept: #2a512a; --predicted: #2a512a;
  --sentinel: #2a3d70; --mode: #4b3070; --special: #3a3a42; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 72rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; } h3 { font-size: 1rem; margin-bottom: .3rem; }
table { border-collapse: collapse; margin: .6rem 0; } th, td { text-align: left; padding: .15rem .9rem .15rem 0;
  border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere; }
th { font-weight: 600; } .number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.dim { color: var(--dim); } .card { background: var(--card); border-radius: 6px; padding: .6rem 1rem; margin: .8rem 0; }
.bars td { border: 0; padding-top: 0; padding-bottom: 0; } .bars .track { width: 24rem; max-width: 40vw; }
.bar { background: var(--bar); height: .8rem; min-width: 1px; border-radius: 2px; display: block; margin-top: .35rem; }
.text { font-family: ui-monospace, monospace; font-size: 13px; white-space: pre-wrap; overflow-wrap: anywhere;
  margin: .3rem 0; } .figures { display: flex; flex-wrap: wrap; gap: 1.5rem; }
figure { margin: .6rem 0; } figcaption { font-size: 13px; color: var(--dim); }
img { image-rendering: pixelated; border: 1px solid var(--line); background: var(--paper); display: block; }
"""

COLOUR = (74, 127, 212)
"""Of what is true in a picture, readable on light and on dark; what is false is transparent."""

PICTURE_SIZE = 320
"""Pixels of a picture's longer side on the page, about."""


class Html(str):
    """Text that is HTML already."""


Child = Any
"""What is inside an element: a text, HTML, None for nothing, or any number of these, however nested."""


def escape(text: str) -> Html:
    """A text as it is shown: markup is text, and what cannot be seen is written out."""
    return Html(html.escape("\n".join(map(printable, text.split("\n")))))


def tag(name: str, *children: Child, **attributes: str | int | None) -> Html:
    """An element; an underscore before or behind the name of an attribute is none of it, one inside is a dash.

    >>> tag("p", "a < b", tag("b", "!"), _class="x")
    '<p class="x">a &lt; b<b>!</b></p>'
    """
    inside = "".join(_flat(children))
    given = "".join(
        f' {key.strip("_").replace("_", "-")}="{html.escape(printable(str(value)))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{given}>" if name == "img" else f"<{name}{given}>{inside}</{name}>")


def _flat(children: Iterable[Any]) -> Iterable[str]:
    for child in children:
        if isinstance(child, Html):
            yield child
        elif isinstance(child, str):
            yield escape(child)
        elif child is not None:
            yield from _flat(child)


def document(title: str, *body: Child, style: str = "") -> str:
    """A whole page, which may load nothing and run nothing.

    Args:
        title: of the page, and its first heading.
        body: elements.
        style: CSS besides that of all pages.
    """
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    head = tag(
        "head",
        Html('<meta charset="utf-8">'),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        tag("title", title),
        tag("style", Html(STYLE + style)),
    )
    return f"<!doctype html>\n{tag('html', head, tag('body', tag('h1', title), *body), lang='en')}\n"


def write(path: pathlib.Path, content: str) -> None:
    """Writes a page in one move.

    Raises:
        UsageError: it cannot be written.
    """
    unfinished = path.with_name(f"{path.name}.unfinished")
    try:
        unfinished.write_text(content, encoding="utf-8")
        unfinished.replace(path)
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({error.strerror or error})") from error
    finally:
        unfinished.unlink(missing_ok=True)


def section(title: str, *body: Child) -> Html:
    """A part of a page."""
    return tag("section", tag("h2", title), *body)


def table(rows: Iterable[Sequence[Any]], *, head: Sequence[str] = ()) -> Html:
    """A table; numbers stand at the right of their column."""
    top = tag("tr", (tag("th", name) for name in head)) if head else None
    return tag("table", top, (tag("tr", map(_cell, row)) for row in rows))


def _cell(value: Any) -> Html:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return tag("td", value if isinstance(value, str) else str(value))
    return tag("td", f"{value:,}" if isinstance(value, int) else f"{value:,.4g}", _class="number")


def bars(values: Mapping[str, float] | Sequence[tuple[str, float]], *, shares: bool = False) -> Html:
    """A plot: a bar for each name, as long as its number is great.

    Args:
        values: numbers from 0 by name.
        shares: whether to write each as a share of the sum too.
    """
    pairs = list(values.items()) if isinstance(values, Mapping) else list(values)
    most = max((value for _, value in pairs), default=0) or 1
    total = sum(value for _, value in pairs) or 1
    rows = []
    for name, value in pairs:
        number = f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
        bar = tag("span", _class="bar", style=f"width:{100 * value / most:.2f}%") if value else None
        share = tag("td", f"{value / total:.1%}", _class="number") if shares else None
        rows.append(tag("tr", tag("td", name), tag("td", bar, _class="track"), _number(number), share))
    return tag("table", rows, _class="bars")


def _number(text: str) -> Html:
    return tag("td", text, _class="number")


def picture(values: Any, *, caption: str) -> Html:
    """A picture of a matrix of booleans, the first row at the top.

    Args:
        values: NumPy array [T, S].
        caption: what it shows.
    """
    rows, columns = values.shape
    data = base64.b64encode(png(values)).decode()
    scale = max(1, PICTURE_SIZE // max(rows, columns, 1))
    image = tag("img", src=f"data:image/png;base64,{data}", width=columns * scale, height=rows * scale, alt=caption)
    return tag("figure", image, tag("figcaption", caption))


def png(values: Any) -> bytes:
    """A matrix of booleans [T, S] as a PNG file of one bit a pixel.

    Reference: Portable Network Graphics (W3C), colour type 3 with tRNS.
    """
    import numpy as np

    rows, columns = values.shape
    lines = np.packbits(np.asarray(values, bool), axis=1)
    raw = np.concatenate([np.zeros((rows, 1), np.uint8), lines], axis=1).tobytes()  # each line without a filter
    return b"".join(
        [
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", struct.pack(">IIBBBBB", columns, rows, 1, 3, 0, 0, 0)),
            _chunk(b"PLTE", bytes([0, 0, 0, *COLOUR])),
            _chunk(b"tRNS", bytes([0, 255])),
            _chunk(b"IDAT", zlib.compress(raw, 9)),
            _chunk(b"IEND", b""),
        ]
    )


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
