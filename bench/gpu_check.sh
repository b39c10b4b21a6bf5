#!/bin/sh
# The transformers engine on a GPU, in under eight minutes, without a network: step latency, its split into draft and
# verification, and a lossless check, over prompts of 1k to 32k tokens. Writes $OUT/gpu_check.json.
#
#   PYTHON=python3 OUT=results sh bench/gpu_check.sh [--dist FOLDER] [--tiny]
#
# PYTHON needs PyTorch and transformers, and nothing else.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-.}
mkdir -p "$out"
exec "${PYTHON:-python3}" "$here/inprocess" gpu-check --out "$out/gpu_check.json" "$@"
