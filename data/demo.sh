#!/bin/sh
# The whole pipeline by its real commands, each shown before it runs.
set -eu
cd "$(dirname "$0")/.."
show() { printf '\n$ %s\n' "$*"; }

show "seqtool train"
seqtool train

show "head -5 data/test.en | seqtool translate -m checkpoints/demo"
head -5 data/test.en | seqtool translate -m checkpoints/demo

show "seqtool eval -m checkpoints/demo data/test.en data/test.de"
seqtool eval -m checkpoints/demo data/test.en data/test.de
