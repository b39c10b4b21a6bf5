"""Refusals of the curation side."""

from sources.errors import Refusal


class RecipeError(Refusal):
    """A recipe cannot be used: names the recipe, the field and what to do."""


class BuildError(Refusal):
    """A build cannot go on: names the category, record or file and what to do."""


class DistError(Refusal):
    """A DIST cannot be read or must not be used as asked: names the folder or file, the row and what to do."""


class EmbeddingError(Refusal):
    """Texts cannot be embedded: names the embedder and what to do."""


class ReleaseError(Refusal):
    """A release cannot be pushed: names the repository or file and what to do."""
