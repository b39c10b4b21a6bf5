"""The refusals that a user reads in one line."""


class Refusal(Exception):
    """Something a user can mend: one line that names the file, row, source or option, and the remedy.

    The command line prints it without a traceback and exits with 1.
    """


class SourceError(Refusal):
    """A source cannot be read: names the source, the file and what to do."""
