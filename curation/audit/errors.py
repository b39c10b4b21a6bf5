"""Refusals of the audit."""

from sources.errors import Refusal


class AuditError(Refusal):
    """An audit cannot go on: names the file, folder or option and what to do."""
