"""Launchers run with commands of our own in place of those of a cluster, which note how they were called."""

import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

FAKE = """#!{python}
import json, os, pathlib, sys
here = pathlib.Path({folder!r})
name = {name!r}
given = sys.stdin.read() if not sys.stdin.isatty() and name in ("sbatch", "kubectl") else ""
with (here / "calls.jsonl").open("a") as calls:
    calls.write(json.dumps([name, sys.argv[1:], given]) + "\\n")
rules = json.loads((here / "answers.json").read_text())
for number, (wanted, text, code, times) in enumerate(rules):
    if wanted in " ".join([name, *sys.argv[1:]]) and times != 0:
        rules[number][3] = times - 1
        (here / "answers.json").write_text(json.dumps(rules))
        print(text)
        sys.exit(code)
"""


class Fakes:
    """Commands on the path that note their arguments and answer as they are told.

    Args:
        folder: for them.
        names: of the commands.
    """

    def __init__(self, folder: pathlib.Path, *names: str):
        self.folder = folder
        self.answers()
        for name in names:
            path = folder / name
            path.write_text(FAKE.format(python=sys.executable, folder=str(folder), name=name))
            path.chmod(0o755)

    def answers(self, *rules: tuple[str, str, int, int]) -> None:
        """Of the first rule whose words are in a call its text and exit code are given, so many times (-1 = ever)."""
        (self.folder / "answers.json").write_text(json.dumps(rules))

    def calls(self) -> list[list]:
        """Name, arguments and standard input of every call."""
        path = self.folder / "calls.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def run(script: str, *arguments: str, fakes: Fakes | None = None, timeout: float = 120, **environment: str):
    """Runs a launcher; its exit code, output and errors."""
    path = f"{fakes.folder}:{os.environ['PATH']}" if fakes else os.environ["PATH"]
    return subprocess.run(
        ["bash", str(ROOT / "launch" / script), *arguments],
        env={**os.environ, "PATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
