#!/usr/bin/env bash
# Measures edge on the streams of docs/results/streams.md and prints its tables;
# streams.py page then writes them into the page. The
# figures of the other learners are recorded in opponents.csv; streams.py opponents
# measures them again (hours; it needs python3-sklearn and python3-xgboost).
#
#   docs/results/streams.sh                 measure everything, print all tables
#   docs/results/streams.sh --only late/    one table; --only /rialto one stream
set -euo pipefail
cd "$(dirname "$0")"
./streams.py edge edge --again "$@"
./streams.py edge alone --again "$@" -- --alone
./streams.py table "$@"
