"""Starts llama.cpp's server in this process. The only importer of `xllamacpp`."""

from __future__ import annotations

from typing import Any

from bench.embedded.options import EmbeddedOptions
from bench.errors import EngineError

HOST = "127.0.0.1"


def start(options: EmbeddedOptions) -> tuple[Any, str]:
    """Return a server that listens, which ends when it is deleted, and its URL.

    Raises
    ------
    EngineError
        If `xllamacpp` is not installed, a model cannot be loaded, the port is taken, or the drafter does not draft.
    """
    try:
        import xllamacpp
    except ModuleNotFoundError:
        raise EngineError("xllamacpp is not installed; install speedbench[llamacpp]") from None
    try:
        server = xllamacpp.Server(_parameters(xllamacpp, options))
    except RuntimeError as error:
        raise EngineError(f"llama.cpp does not start with {options.model} on port {options.port}: {error}") from None
    if options.draft is not None and not _drafts(server):
        raise EngineError(f"--draft {options.draft}: llama.cpp does not draft with it; is its vocabulary the target's?")
    return server, str(server.listening_address)


def _drafts(server: Any) -> bool:
    """Tell whether a few tokens are drafted: a drafter that does not fit is left out without an error."""
    asked = {"prompt": [0, 1, 2, 3], "n_predict": 8, "ignore_eos": True, "temperature": 0.0}
    return "draft_n" in server.handle_completions(asked)["timings"]


def _parameters(xllamacpp: Any, options: EmbeddedOptions) -> Any:
    """Return llama.cpp's parameters: no cache of prompts, and arithmetic that does not depend on the batch's size."""
    p = xllamacpp.CommonParams()
    p.model.path = str(options.model)
    p.hostnames, p.port = [HOST], options.port
    p.n_parallel, p.n_ctx = options.parallel, options.context * options.parallel
    p.endpoint_metrics, p.endpoint_slots, p.ui = True, False, False
    p.cache_prompt, p.cache_ram_mib, p.n_ctx_checkpoints, p.cache_idle_slots = False, 0, 0, False
    p.fit_params = False
    p.cache_type_k = p.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    p.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    # A request states temperature and top_p; these two would cut its distribution unasked.
    p.sampling.top_k, p.sampling.min_p = 0, 0.0
    _set_threads(p, options.threads)
    _speculate(xllamacpp, p.speculative, options)
    return p


def _speculate(xllamacpp: Any, speculative: Any, options: EmbeddedOptions) -> None:
    kinds = xllamacpp.common_speculative_type
    if options.draft is not None:
        speculative.types = [kinds.COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE]
        draft = speculative.draft
        draft.mparams.path = str(options.draft)
        # Drafts of full length whatever the drafter's confidence, so that k is what it is called.
        draft.n_max, draft.n_min, draft.p_min = options.draft_length, 0, 0.0
        draft.probabilistic = options.probabilistic
        draft.cache_type_k = draft.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
        _set_threads(draft, options.threads)
    elif options.ngram:
        speculative.types = [kinds.COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE]
        ngram = speculative.ngram_simple
        ngram.size_n, ngram.size_m, ngram.min_hits = options.ngram_match, options.ngram, 1


def _set_threads(part: Any, threads: int) -> None:
    part.cpuparams.n_threads = part.cpuparams_batch.n_threads = threads
