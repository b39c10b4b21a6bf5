"""`python -m bench.inprocess …`, or `PYTHON …/bench/inprocess …` in an environment that has no `bench`."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

if not __package__:
    # Started by its path. The folder of `bench` itself stays off sys.path: where it was installed as a wheel, that
    # folder holds the packages of another environment, which would come before the user's own.
    here = Path(__file__).resolve().parent
    bench = ModuleType("bench")
    bench.__path__ = [str(here.parent)]
    sys.modules["bench"] = bench
    sys.path = [entry for entry in sys.path if Path(entry or ".").resolve() != here]

from bench.inprocess.commands import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
