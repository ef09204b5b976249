#!/usr/bin/env bash
# run.sh BINARY SEED SEEDS [ARGUMENT…] simulates SEEDS seeds from SEED on with a test
# binary, in one process per core, each with a range of seeds. It prints their output,
# and fails if one of them fails.
set -euo pipefail
binary=$1 seed=$2 seeds=$3
shift 3
processes=$(nproc)
[ "$seeds" -ge "$((100 * processes))" ] || processes=1
running=()
trap 'kill "${running[@]}" 2>/dev/null || true' EXIT
for i in $(seq 0 $((processes - 1))); do
	from=$((seeds * i / processes)) to=$((seeds * (i + 1) / processes))
	"$binary" -test.run '^Test(Simulation|FleetSimulation|Replay)$' -seed $((seed + from)) -seeds $((to - from)) "$@" &
	running+=($!)
done
failed=0
for process in "${running[@]}"; do
	wait "$process" || failed=1
done
running=()
[ $failed = 0 ] && echo "seeds $seed to $((seed + seeds - 1)) pass" || echo "FAILED: the output above names the seeds, and the command that replays each"
exit $failed
