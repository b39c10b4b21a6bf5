"""The coordinator: which conversation is sent when, and what follows an answer. Parses; the workers do not."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace

from bench.answer import Answer
from bench.client.messages import Finished
from bench.client.pool import WorkerPool
from bench.engines.base import parse_answer
from bench.errors import BenchError
from bench.prompts import Composer, Prompt
from bench.split import Conversation
from bench.trace import Reads, Trace
from bench.transport.base import unframe

POLL_S = 0.2
LEAD_NS = 200_000_000
"""Head start of an open loop, so that the first requests are not late before they exist."""
INTERRUPTED = "interrupted"
"""Why a run stopped that was ended from the keyboard."""


@dataclass(slots=True)
class Task:
    """One conversation under way."""

    conversation: Conversation
    prompt: Prompt
    repeat: int = 0
    attempt: int = 0
    warmup: bool = False
    turn: int = 0


@dataclass(frozen=True, slots=True)
class Bounds:
    """When a run ends before its conversations do."""

    max_consecutive_failures: int = 20
    max_run_s: float | None = None


@dataclass(slots=True)
class Driver:
    """Drives the conversations of one run through a pool of workers.

    Attributes
    ----------
    record
        Called with each trace as its request ends.
    progress
        Called with the number of conversations that ended and of those that failed.
    """

    pool: WorkerPool
    composer: Composer
    tasks: Sequence[Task]
    record: Callable[[Trace, Answer], None]
    progress: Callable[[int, int], None]
    bounds: Bounds = field(default_factory=Bounds)
    stopped: str = ""
    ended: int = 0
    failed: int = 0
    _failures: int = 0
    _next: int = 0
    _open: int = 0

    def closed(self, concurrency: int) -> None:
        """Keep `concurrency` conversations open, and some waiting at the workers so that no slot idles."""
        ahead = concurrency + max(4, concurrency // 4)
        while self._next < len(self.tasks) and self._open < ahead:
            self._start(None)
        self.pool.go()
        self._follow(lambda: self._start(None))

    def scheduled(self, offsets_s: Sequence[float]) -> None:
        """Start each conversation at its offset, whatever became of those before it."""
        origin = self.pool.go() + LEAD_NS
        for offset_s in offsets_s:
            self._start(origin + int(offset_s * 1e9))
        self._follow(lambda: None)

    def _start(self, intended_ns: int | None) -> None:
        if self._next < len(self.tasks):
            self.pool.start(self._next, self._next, intended_ns)
            self._next += 1
            self._open += 1

    def _follow(self, refill: Callable[[], None]) -> None:
        begin = time.perf_counter()
        try:
            while self._open and not self.stopped:
                for finished in self.pool.finished(POLL_S):
                    self._take(finished, refill)
                limit = self.bounds.max_run_s
                if limit is not None and time.perf_counter() - begin > limit:
                    self.stopped = f"limits.max_run_s: {limit:g} s are over"
        except KeyboardInterrupt:
            self.stopped = INTERRUPTED

    def _take(self, finished: Finished, refill: Callable[[], None]) -> None:
        task = self.tasks[finished.key]
        trace, answer = self._traced(task, finished)
        self.record(trace, answer)
        self._judge(answer)
        if not answer.error and task.turn + 1 < len(task.conversation.turns):
            fault = self._go_on(task, finished.key, answer)
            if not fault:
                return
            answer = replace(answer, error=fault)
        self._open -= 1
        self.ended += 1
        self.failed += bool(answer.error)
        self.pool.end(finished.key)
        refill()
        self.progress(self.ended, self.failed)

    def _go_on(self, task: Task, key: int, answer: Answer) -> str:
        try:
            task.prompt = self.composer.following(task.conversation, task.turn + 1, task.prompt, answer)
        except BenchError as error:
            self.stopped = str(error)
            return self.stopped
        task.turn += 1
        self.pool.next_turn(key, self.composer.body(task.prompt, f"{task.conversation.question_id}-{task.repeat}"))
        return ""

    def _judge(self, answer: Answer) -> None:
        self._failures = self._failures + 1 if answer.error else 0
        if self._failures >= self.bounds.max_consecutive_failures:
            self.stopped = f"{self._failures} requests in a row failed; the last: {answer.error}"

    def _traced(self, task: Task, finished: Finished) -> tuple[Trace, Answer]:
        reading, error = finished.reading, finished.reading.error
        try:
            status, reads = unframe(reading)
        except ValueError as fault:
            status, reads, error = None, Reads(), error or str(fault)
        answer = parse_answer(self.composer.engine, reads, status, error)
        trace = Trace(
            conversation_id=task.conversation.question_id,
            turn=task.turn,
            num_turns=len(task.conversation.turns),
            slices=task.conversation.slices,
            prompt_sha256=task.prompt.sha256,
            prompt_tokens=None if task.prompt.ids is None else len(task.prompt.ids),
            intended_ns=finished.intended_ns,
            dispatch_ns=finished.dispatch_ns,
            sent_ns=reading.sent_ns,
            end_ns=reading.end_ns,
            reads=reads,
            status=status,
            transport_error=error,
            error=answer.error,
            repeat=task.repeat,
            attempt=task.attempt,
            warmup=task.warmup,
            usage=asdict(answer.usage),
            finish_reason=answer.finish_reason,
        )
        return trace, answer
