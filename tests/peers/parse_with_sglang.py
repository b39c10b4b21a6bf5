"""Parse server commands with SGLang's own parser: ROOT of its package, then JSON of name -> arguments on stdin.

SGLang's wheel is unpacked without what it depends on, so its parser runs where torch and transformers are, and what is
only imported on the way to it (kernels, codecs) is stood in for. The parser itself and all that it lists are SGLang's.
"""

import argparse
import importlib.abc
import importlib.machinery
import json
import sys
import types
import warnings
from pathlib import Path

# In older versions the parser's module imports layers for the sake of one number.
STOOD_IN = ("sglang.srt.layers",)


class AnythingType(type):
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything


class Anything(metaclass=AnythingType):
    def __init__(self, *args, **kwargs):
        pass

    def __class_getitem__(cls, item):
        return cls

    def __call__(self, *args, **kwargs):
        return args[0] if args and callable(args[0]) else self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()


class StandIn(types.ModuleType):
    __path__ = ()
    __version__ = "0"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (Anything,), {})


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Stands in for what SGLang imports and nobody has installed; for no one else's imports, which may be optional."""

    def __init__(self):
        self.made = set()

    def find_spec(self, name, path=None, target=None):
        frame = sys._getframe(1)
        while "importlib" in frame.f_code.co_filename:
            frame = frame.f_back
        asked_by_sglang = frame.f_globals.get("__name__", "").startswith("sglang")
        ours = asked_by_sglang and not name.startswith("sglang")
        if not (ours or name.startswith(STOOD_IN) or name.rpartition(".")[0] in self.made):
            return None
        self.made.add(name)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return StandIn(spec.name)

    def exec_module(self, module):
        pass


class Layers(StandIns):
    """Comes first, for modules of SGLang's own that are stood in for."""

    def find_spec(self, name, path=None, target=None):
        return super().find_spec(name, path, target) if name.startswith(STOOD_IN) else None


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise ValueError(message)


def make_parser(root):
    # The package's own __init__ imports its frontend language; the server's parser does not need that.
    package = types.ModuleType("sglang")
    package.__path__ = [str(Path(root) / "sglang")]
    package.__version__ = ""
    sys.modules["sglang"] = package
    sys.meta_path.insert(0, Layers())
    sys.meta_path.append(StandIns())
    from sglang.srt.server_args import ServerArgs

    parser = Parser()
    ServerArgs.add_cli_args(parser)
    return parser


def algorithm(name):
    """Return the name of a speculative algorithm as SGLang resolves it; older parsers hold the choices themselves."""
    from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

    found = SpeculativeAlgorithm.from_string(name)
    return getattr(found, "name", str(found))


def parsed(parser, arguments):
    try:
        args = parser.parse_args(arguments)
        return {"values": {key: value for key, value in vars(args).items() if is_plain(value)}}
    except ValueError as error:
        return {"error": str(error)}


def is_plain(value):
    return value is None or isinstance(value, (bool, int, float, str))


def main():
    warnings.simplefilter("ignore")
    parser = make_parser(sys.argv[1])
    found = {name: parsed(parser, arguments) for name, arguments in json.load(sys.stdin).items()}
    for result in found.values():
        if result.get("values", {}).get("speculative_algorithm"):
            try:
                result["algorithm"] = algorithm(result["values"]["speculative_algorithm"])
            except ValueError as error:
                result["error"] = str(error)
    sys.stdout.write(json.dumps(found) + "\n")


main()
