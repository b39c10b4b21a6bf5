"""Refusals of the runner: each names the file, setting or server, and the remedy."""

from sources.errors import Refusal


class BenchError(Refusal):
    """A run cannot start, go on or be read."""


class ConfigError(BenchError):
    """A configuration file cannot be used: names the file, the field and what to do."""


class EngineError(BenchError):
    """An inference engine did not start, answer or tell what it must: names the server and what it said."""


class UnlikeRuns(BenchError):
    """Two results cannot be compared: names the setting that differs."""


class UnpublishedFigure(BenchError):
    """A gate holds the figures of a run back: names the gates."""
