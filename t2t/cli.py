"""The command line: `t2t COMMAND ...`, also `python -m t2t COMMAND ...`.

Each command is a module of `t2t.commands` with a function `run(arguments)`. Modules are imported when their command is
called, and they import JAX, TensorFlow and the like when they have read their arguments: help is instant.

Exit codes: 0 done; 1 the command failed (retrying may help); 2 the command or its config is wrong (it will not);
130 interrupted by Ctrl-C; 143 ended by SIGTERM. A training run that is interrupted has saved a checkpoint first.
"""

import contextlib
import difflib
import importlib
import keyword
import os
import sys
import traceback
from collections.abc import Sequence

from t2t import __version__, interrupts
from t2t.errors import UsageError

COMMANDS = {
    "train": "train CONFIG, or continue a run",
    "eval": "evaluate a run, or a config with --init",
    "generate": "generate text from the lines of a file",
    "score": "log-probabilities of the lines of a file",
    "export": "write a run as a Hugging Face directory",
    "import": "write a Hugging Face directory as a model directory",
    "plan": "what a run would take on a slice of TPU chips, without one",
    "report": "what runs have reached, beside baselines",
    "presets": "list published models, or show one",
    "tasks": "list tasks, or show examples of one",
    "cache": "make the tokens of a config once, for runs to read",
    "audit": "look at a corpus: lengths, languages, duplicates, text of evaluation sets in it",
    "vocab": "train a vocabulary on your text",
    "tokenize": "show how vocabularies cut text, one or two side by side",
    "doctor": "show versions and devices, what is missing and how to get it",
}
"""The commands with their summaries, in the order of the help."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that `arguments` (else those of the process) name and return the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given or os.environ.get("T2T_DEBUG") == "1"
    given = [argument for argument in given if argument != "--debug"]
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # TensorFlow reads data here and need not report on GPUs
    with interrupts.Watch() as watch:
        code, message, error = _run(given, watch)
        if error is not None and debug:
            print(printable("".join(traceback.format_exception(error)).rstrip("\n")), file=sys.stderr)
        if message:
            print(printable(message), file=sys.stderr)
        if watch.received and arguments is None:
            # Threads and event loops that were cut short would wait for each other, and complain.
            with contextlib.suppress(OSError):
                sys.stdout.flush()
            os._exit(code)
    return code


def printable(text: str) -> str:
    r"""A text whose characters all show: others, which may come from files and command a terminal, as escapes.

    >>> print(printable("a weight named \x1b[31m, of two" + chr(10) + "lines"))
    a weight named \x1b[31m, of two
    lines
    """
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def _run(arguments: list[str], watch: interrupts.Watch) -> tuple[int, str, BaseException | None]:
    """The exit code of a command, with the message and the error that ended it."""
    try:
        code = _dispatch(arguments)
        return (interrupts.EXIT_CODE, "interrupted", None) if watch.received else (code, "", None)
    except KeyboardInterrupt as error:
        return interrupts.EXIT_CODE, "interrupted", error
    except BrokenPipeError:
        # The reader of our output has seen enough (`t2t presets | head`); nothing more can be written to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0, "", None
    except Exception as error:  # the outermost frame: everything unforeseen is named, and shown in full with --debug
        if watch.received:  # libraries make other errors of Ctrl-C
            return interrupts.EXIT_CODE, "interrupted", error
        foreseen = isinstance(error, ValueError | TypeError | OSError | ImportError)
        message = f"{error}" if foreseen else f"{type(error).__name__}: {error} (--debug shows where)"
        return 2 if isinstance(error, UsageError) else 1, f"error: {message}", error


def _dispatch(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(_help())
        return 0 if arguments else 2
    if arguments[0] in ("--version", "version"):
        print(f"t2t {__version__}")
        return 0
    command, *rest = arguments
    if command not in COMMANDS:
        close = difflib.get_close_matches(command, COMMANDS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"the commands are {', '.join(COMMANDS)}"
        raise UsageError(f"there is no command {command}; {hint}")
    module = importlib.import_module(f"t2t.commands.{command}{'_' * keyword.iskeyword(command)}")
    try:
        return module.run(rest)
    except SystemExit as exit_:  # tyro ends the process itself after printing help (0) or what it refused (2)
        return exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)


def _help() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {summary}" for name, summary in COMMANDS.items()]
    return "\n".join(
        [
            f"t2t {__version__}: pretrain, adapt and ship transformer text models in JAX",
            "",
            "usage: t2t COMMAND [ARGUMENTS]",
            "",
            *lines,
            "",
            "t2t COMMAND --help shows a command, t2t train CONFIG --help every setting of a config.",
            "--debug (or T2T_DEBUG=1) shows the traceback of an error. Start with: t2t train quickstart",
        ]
    )
