"""The error of one text among many: which one it is, and what is the matter with it."""


class TextError(ValueError):
    """A text that cannot be read or continued; the others of the call may well be.

    Attributes:
        index: of the text in what was given, from 0; messages count from 1.
        problem: what is the matter, as a sentence whose subject is the text.
    """

    def __init__(self, index: int, problem: str):
        super().__init__(f"text {index + 1} {problem}")
        self.index = index
        self.problem = problem


class TextMemoryError(TextError):
    """A text for which this device has no memory; another one may."""
