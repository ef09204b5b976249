#!/usr/bin/env bash
# Prints docs/results/datasets.md's table of streams: every file of ../shared/data with
# the default configuration, beside the independent prototype's figures in
# ../shared/reference/prototype.csv. Run it from the repository: docs/results/datasets.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
data=../shared/data reference=../shared/reference/prototype.csv
go build -o "${EDGE:=$(mktemp -d)/edge-lab}" ./cmd/edge-lab
seeds=${SEEDS:-3}
echo "| data set | rows | C | minibatch | M | order | error | prototype | nll | prototype | nll, difference | ECE |"
echo "|---|---|---|---|---|---|---|---|---|---|---|---|"
tail -n +2 "$reference" | tr -d '\r' | sed 's/"[^"]*"/within/' | sort -t, -k5,5n -k6,6n -k1,1 |
while IFS=, read -r set order _ _ batch inducing error nll _; do
	flags=(--first 6000 --batch "$batch" --seeds "$seeds" --shuffle 1)
	case $order in
	within) flags+=(--shuffle-within 445,1244,1586,161,197,2300,294,470) ;;
	file) flags=(--first 6000 --batch "$batch") ;; # one run
	esac
	[ "$inducing" = 50 ] || flags+=(--inducing "$inducing")
	"$EDGE" eval "$data/$set.csv.gz" "${flags[@]}" | tail -n 1 | sed 's/ ± [0-9.]*//g' |
		awk -F '  +' -v set="$set" -v b="$batch" -v m="$inducing" -v o="$order" -v e="$error" -v n="$nll" \
			'{printf "| %s | %d | %d | %d | %d | %s | %.4f | %.4f | %.4f | %.4f | %+.1f %% | %.3f |\n", set, $4, $5, b, m, o, $6, e, $7, n, 100*($7/n-1), $9}'
done
