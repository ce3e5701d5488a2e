"""Texts on a terminal: nothing moves the cursor."""

import pytest

from t2t.commands.printing import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 東京 👍", "plain é 東京 👍"),
        ("a\tb\nc\r\x00", "a\\tb\\nc\\r\\x00"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\u202eevil\u2066", "\\u202eevil\\u2066"),
        ("\ud800", "\\ud800"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("", ""),
    ],
)
def test_what_moves_the_cursor_is_written_out(text, shown):
    assert printable(text) == shown
