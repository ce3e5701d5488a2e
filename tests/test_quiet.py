"""Standard error is kept back while a library is imported, and shown where the import fails."""

import os

import pytest

from t2t import quiet


def test_what_is_written_is_kept_back(capfd):
    with quiet.standard_error():
        os.write(2, b"GPU will not be used\n")
    os.write(2, b"after\n")
    assert capfd.readouterr().err == "after\n"


def test_a_failure_shows_it(capfd):
    with pytest.raises(ValueError, match="no library"), quiet.standard_error():
        os.write(2, b"why\n")
        raise ValueError("no library")
    assert capfd.readouterr().err == "why\n"
