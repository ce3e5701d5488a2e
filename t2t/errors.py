"""Errors with a meaning for the command line; everything else is ValueError, TypeError and their like."""


class UsageError(ValueError):
    """The command or its config cannot work as given: exit code 2, so that a job controller does not try it again."""
