"""OpenAI's embeddings, through their client.

Limits of one request as OpenAI's reference states them: 2,048 inputs, 300,000 tokens in all, 8,192 tokens an input
(older pages say 8,191), no empty string. Tokens are counted with the models' own encoding,
cl100k_base. An input over the limit is cut to its first tokens, at a whole character.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from curation.embedders.base import Batch, unit
from curation.errors import EmbeddingError
from curation.kernels.batches import Limits, plan_batches
from curation.recipe import EmbedderConfig, TokenizerConfig

if TYPE_CHECKING:
    import openai

    from curation.tokenizer import Tokenizer

_MAX_INPUTS = 2_048
_MAX_REQUEST_TOKENS = 300_000
_ENCODING = "cl100k_base"
_MAX_RETRIES = 6  # of the client, with its back-off: 429, 408, 409, 5xx and lost connections
_MAX_IN_FLIGHT = 4
_MAX_REFUSED_FIRST = 8  # texts refused alone before any vector arrives: then it is the request, not the text

# USD for a million tokens of text-embedding-3-large, by third-party price lists seen in November 2026; OpenAI's own
# page is what counts.
_USD_PER_MILLION_TOKENS = {"text-embedding-3-large": 0.13}


class OpenAIEmbedder:
    """An embedding model of OpenAI, or of a server that speaks its API (`OPENAI_BASE_URL`)."""

    def __init__(self, config: EmbedderConfig) -> None:
        self._config = config
        self.id = f"openai-{config.model}-{config.dimensions}-cut{config.max_tokens}"
        self.dimensions = config.dimensions
        self.usd_per_million_tokens = _USD_PER_MILLION_TOKENS.get(config.model)
        self._limits = Limits(_MAX_INPUTS, _MAX_REQUEST_TOKENS, config.max_tokens)

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        from curation.tokenizer import load_tokenizer

        return load_tokenizer(TokenizerConfig(name=_ENCODING))

    def check(self) -> None:
        """Raise `EmbeddingError` unless there is a key."""
        if not os.environ.get("OPENAI_API_KEY"):
            raise EmbeddingError(
                f"embedder openai ({self._config.model}): OPENAI_API_KEY is not set; set it, or build the recipe"
                " v1-offline, which embeds on this machine"
            )

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the tokens of each text by cl100k_base."""
        return [len(self._tokenizer.encode_ordinary(text)) for text in texts]

    def shorten(self, text: str) -> str:
        """Return the longest beginning within the limit of tokens that ends at a whole character."""
        # No token is shorter than a byte, so most texts need no counting.
        limit = self._config.max_tokens
        if len(text.encode("utf-8", "surrogatepass")) <= limit:
            return text
        cut, size = text, limit
        while len(self._tokenizer.encode_ordinary(cut)) > limit:
            cut = text[: self._tokenizer.chars_of(text, size)]
            size -= 1  # what is left of a character that was cut off may count anew as a token more
        return cut

    def embed(self, texts: Sequence[str], *, workers: int) -> Iterator[Batch]:
        """Yield the vectors of each request as its answer arrives; a refused request is split until one text is left.

        Raises
        ------
        EmbeddingError
            If the service cannot be reached or refuses the key, the model or the rate after all retries. What arrived
            before is kept by the caller, so running again goes on from there.
        """
        import openai

        self.check()
        client = openai.OpenAI(max_retries=_MAX_RETRIES)
        plan = plan_batches(self.count_tokens(texts), self._limits)
        waiting = deque(plan.batches)
        in_flight: dict[Future[Batch], tuple[int, ...]] = {}
        arrived = num_refused = 0
        with ThreadPoolExecutor(_MAX_IN_FLIGHT) as pool:
            try:
                while waiting or in_flight:
                    while waiting and len(in_flight) < _MAX_IN_FLIGHT:
                        places = waiting.popleft()
                        in_flight[pool.submit(self._request, client, texts, places)] = places
                    for future in wait(in_flight, return_when=FIRST_COMPLETED).done:
                        batch = _answer(future, in_flight.pop(future), waiting, self.dimensions)
                        if batch is None:
                            continue
                        arrived += len(batch.places)
                        num_refused += len(batch.refused)
                        if not arrived and num_refused > _MAX_REFUSED_FIRST:
                            raise self._failed(f"every text is refused: {batch.refused[0][1]}")
                        yield batch
            except openai.OpenAIError as error:
                raise self._failed(_first_line(error)) from None
            finally:
                pool.shutdown(wait=True, cancel_futures=True)

    def _failed(self, reason: str) -> EmbeddingError:
        return EmbeddingError(f"embedder openai ({self._config.model}): {reason}; what arrived is kept, run again")

    def _request(self, client: openai.OpenAI, texts: Sequence[str], places: tuple[int, ...]) -> Batch:
        answer = client.embeddings.create(
            input=[texts[place] for place in places], model=self._config.model, dimensions=self.dimensions
        )
        by_index = {item.index: item.embedding for item in answer.data}
        if sorted(by_index) != list(range(len(places))):
            raise self._failed(f"asked for {len(places)} vectors, got {len(answer.data)}")
        rows = [by_index[i] for i in range(len(places))]
        if any(len(row) != self.dimensions for row in rows):
            raise self._failed(f"a vector does not have embedder.dimensions = {self.dimensions} entries")
        return Batch(places, unit(np.array(rows, np.float64)))


def _answer(
    future: Future[Batch], places: tuple[int, ...], waiting: deque[tuple[int, ...]], dimensions: int
) -> Batch | None:
    """Return the batch that came, or the refusal of a single text; a longer request that was refused waits as two."""
    import openai

    try:
        return future.result()
    except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
        if len(places) == 1:
            return Batch((), np.empty((0, dimensions), np.float32), ((places[0], _first_line(error)),))
        half = len(places) // 2
        waiting.extendleft([places[half:], places[:half]])
        return None


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {lines[0][:200]}"
