#!/usr/bin/env bash
# Prints docs/results/streams.md's tables: the streams of ../shared/data in the
# protocol of ../shared/reference/peers.csv, beside the best peer in error and in
# nll. Run it from the repository:
#
#   docs/results/streams.sh batch 100     labels after every 100 predictions, M = 100
#   docs/results/streams.sh sample 50     each label before the next sample, M = 50
#   docs/results/streams.sh seeds 50      as batch, means of 8 seeds of the model, or shuffles, and their standard errors
#   docs/results/streams.sh batch 100 weather rialto     these streams alone
set -euo pipefail
cd "$(dirname "$0")/../.."
mode=${1:-batch} inducing=${2:-50}
peers=../shared/reference/peers.csv
go build -o "${EDGE:=$(mktemp -d)/edge-lab}" ./cmd/edge-lab
runs=1
[ "$mode" != seeds ] || runs=8 mode=batch
case $mode in
batch) size=100 sets="electricity gas_drift_partial insects_reoccurring_tail keystroke occupancy outdoor
	pendigits rialto room_occupancy wall_following weather wisdm_windows" ;;
sample) size=1 sets="electricity gas_drift_partial outdoor wall_following weather" ;;
esac
[ $# -le 2 ] || sets=${*:3}
echo "| stream | error | best peer | nll | best peer | ECE |"
echo "|---|---|---|---|---|---|"
for set in $sets; do
	flags=(--first 20000 --batch "$size" --seeds "$runs")
	case $set in
	pendigits) flags+=(--shuffle 1) ;;
	gas_drift_partial) flags+=(--shuffle 1 --shuffle-within 445,1244,1586,161,197,2300,294,470) ;;
	esac
	[ "$inducing" = 50 ] || flags+=(--inducing "$inducing")
	"$EDGE" eval "../shared/data/$set.csv.gz" "${flags[@]}" --json 2>/dev/null | tr ',{' '\n\n' |
		awk -F'[,:]' -v set="$set" -v mode="$mode" '
			function within(figure, digits) { figure = "\"" figure "_se\""; return figure in se ? sprintf(" ± %.*f", digits, se[figure]) : "" }
			FNR == NR && $1 == "\"error\"" && !seen++ { e = $2 }
			FNR == NR && $1 == "\"nll\"" && !n { n = $2 }
			FNR == NR && $1 == "\"ece\"" && !c { c = $2 }
			FNR == NR && $1 ~ /_se"$/ { se[$1] = $2 }
			FNR == NR { next }
			{ split($0, p, ",") }
			p[1] == "S" && p[2] == set && p[4] == mode && p[8] != "" && (be == "" || p[8] + 0 < be) { be = p[8] + 0; bep = p[3] }
			p[1] == "S" && p[2] == set && p[4] == mode && p[9] != "" && (bn == "" || p[9] + 0 < bn) { bn = p[9] + 0; bnp = p[3] }
			END {
				b = e < be ? "**" : ""; d = n < bn ? "**" : ""
				printf "| %s | %s%.4f%s%s | %.4f %s | %s%.4f%s%s | %.4f %s | %.3f%s |\n", set, b, e, b, within("error", 4), be, bep, d, n, d, within("nll", 4), bn, bnp, c, within("ece", 3)
			}' - "$peers"
done
