"""The simulator's settings out of the options of a command line. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.errors import ConfigError
from bench.simulator.dialects import DIALECTS
from bench.simulator.process import Process
from bench.simulator.server import Simulation

_PROCESS = ("prompt_spread", "plain_share", "failed_share", "merged_share", "seed")


def simulation_from(options: Mapping[str, Any]) -> Simulation:
    """Return the settings.

    Raises
    ------
    ConfigError
        If a value does not parse, or there is no such dialect.
    """
    if options["dialect"] not in DIALECTS:
        raise ConfigError(f"--dialect: no {options['dialect']!r}; known are {', '.join(DIALECTS)}")
    try:
        rates = tuple(float(rate) for rate in options["acceptance_rates"].split(",") if rate)
        least, most = (int(count) for count in options["tokens"].split(","))
    except ValueError as error:
        raise ConfigError(f"--acceptance-rates and --tokens take numbers with commas between: {error}") from None
    process = Process(rates, least, most, **{name: options[name] for name in _PROCESS})
    rest = {name: value for name, value in options.items() if name not in (*_PROCESS, "acceptance_rates", "tokens")}
    return Simulation(process=process, **rest)
