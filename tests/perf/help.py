"""How long `speedbench --help` takes beside the start of a bare interpreter: at most 8 times is the aim."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time

ROUNDS = 15


def start_s(*arguments: str) -> float:
    """Wall-clock seconds of one run of this interpreter."""
    start_ns = time.perf_counter_ns()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter_ns() - start_ns) / 1e9


def main() -> None:
    """Alternate the two, so that both see the same load of the machine, and compare their medians."""
    pairs = [(start_s("-c", "pass"), start_s("-m", "speedbench", "--help")) for _ in range(ROUNDS + 1)]
    bare_s, help_s = (statistics.median(times) for times in zip(*pairs[1:], strict=True))
    print(json.dumps({"bare_s": round(bare_s, 4), "help_s": round(help_s, 4), "ratio": round(help_s / bare_s, 2)}))


if __name__ == "__main__":
    main()
