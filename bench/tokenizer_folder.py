"""The folder with a served model's tokenizer: a path, or the Hub's. The one door of the runner to the Hub."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from bench.errors import ConfigError

FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")
"""All that prompts are made of; never weights."""
_HUB_ID = re.compile(r"(?P<repo>[A-Za-z0-9][\w.-]*/[\w.-]+)(?:@(?P<revision>[\w./-]+))?")


def tokenizer_folder(name: str) -> Path:
    """Return the folder that `engine.tokenizer` names.

    Parameters
    ----------
    name
        A folder, or ``ORG/NAME[@REVISION]`` on the Hub: from its cache on this disk, where engines too put what they
        load, else fetched, three small files.

    Raises
    ------
    ConfigError
        If there is neither.
    """
    found = _HUB_ID.fullmatch(name)
    if Path(name).is_dir() or found is None:
        return Path(name)
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    snapshot = partial(snapshot_download, found["repo"], revision=found["revision"], allow_patterns=list(FILES))
    try:
        cached = Path(snapshot(local_files_only=True))
        if (cached / FILES[0]).is_file():  # an engine may have left a snapshot without it
            return cached
    except LocalEntryNotFoundError:
        pass
    try:
        return Path(snapshot())
    except (OSError, ValueError) as error:  # the client's own errors are kinds of these
        why = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ConfigError(
            f"engine.tokenizer: {name}: neither a folder nor to be had from the Hub: {why}; "
            "give the folder of the served model, or log in with `hf auth login` where it is gated"
        ) from None
