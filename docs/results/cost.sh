#!/usr/bin/env bash
# Draws docs/results/cost.svg and prints its numbers: the processor time of a minibatch
# and of a prediction of the default model, with one size changed at a time, and
# the slope from each size to the next, which is the exponent of the cost there.
# The least of ROUNDS (3) rounds counts. A round lasts TIME (500ms), so that large models
# have several steps in it: every second one alone moves kernel and inducing inputs.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
go test -c -o "$folder/online" ./online
for _ in $(seq "${ROUNDS:-3}"); do
	GOMAXPROCS=1 "$folder/online" -test.run '^$' -test.bench '^BenchmarkCost$' -test.benchtime "${TIME:-500ms}"
done | go run ./cmd/edge-lab cost docs/results/cost.svg
