"""Parse server commands with vLLM's own parser, and check what they say of speculation as vLLM does ahead of loading.

JSON of name -> arguments on stdin; --model and a draft's model are folders with a config.json. Last line: JSON of
name -> what was understood, or the error.
"""

import json
import logging
import sys

from vllm.config import ParallelConfig, speculative
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.entrypoints.launchers.cli_args import make_arg_parser, validate_parsed_serve_args
from vllm.utils.argparse_utils import FlexibleArgumentParser

# The package of suffix decoding is not part of vLLM; its absence is not what is checked here.
speculative.has_arctic_inference = lambda: True


class Refused(Exception):
    pass


class Parser(FlexibleArgumentParser):
    def error(self, message):
        raise Refused(message)


def understood(parser, arguments):
    args = parser.parse_args(["--skip-tokenizer-init", *arguments])
    validate_parsed_serve_args(args)
    engine = AsyncEngineArgs.from_cli_args(args)
    target = engine.create_model_config()
    spec = engine.create_speculative_config(target, ParallelConfig(tensor_parallel_size=engine.tensor_parallel_size))
    return {
        "max_num_seqs": engine.max_num_seqs,
        "tensor_parallel_size": engine.tensor_parallel_size,
        "prefix_caching": engine.enable_prefix_caching,
        "host": args.host,
        "port": args.port,
        "metrics": args.per_request_spec_decode_metrics,
        "speculation": None
        if spec is None
        else {
            "method": spec.method,
            "length": spec.num_speculative_tokens,
            "draft": getattr(spec.draft_model_config, "model", None),
            "parallel_drafting": spec.parallel_drafting,
        },
    }


def main():
    logging.disable(logging.WARNING)
    parser = make_arg_parser(Parser())
    found = {}
    for name, arguments in json.load(sys.stdin).items():
        try:
            found[name] = understood(parser, arguments)
        except (Refused, ValueError, ImportError, TypeError) as error:
            found[name] = {"error": str(error)}
    sys.stdout.write("\n" + json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
