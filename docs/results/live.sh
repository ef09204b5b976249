#!/usr/bin/env bash
# Prints the tables of docs/results/live.md. Run it from the repository:
#
#   docs/results/live.sh sets      coverage and size of the prediction sets, on every stream of ../shared/data
#   docs/results/live.sh plot      draws docs/results/sets.svg
#   docs/results/live.sh late      coverage of published sets whose labels come late
#   docs/results/live.sh drift     draws docs/results/drift.svg
#   docs/results/live.sh actions   scores with each action after a drift
#   docs/results/live.sh alarms    false alarms and delays of the detectors
#   docs/results/live.sh weights   scores with class weights
set -euo pipefail
cd "$(dirname "$0")/../.."
data=../shared/data
[ -n "${EDGE:-}" ] || go build -o "${EDGE:=$(mktemp -d)/edge-lab}" ./cmd/edge-lab

# fields FILE FLAG...: prints the scores of a file by eval, one "key":value a line.
fields() { "$EDGE" eval --json "$data/$1.csv.gz" "${@:2}" 2>/dev/null | tr ',{}[]' '\n\n\n\n\n'; }

synthetic="waveform pendigits satellite dry_bean htru2 wall_following"
changing="electricity rialto insects_reoccurring_tail gas_drift_partial covertype_15k weather keystroke outdoor arem wisdm_windows"
late="waveform wall_following weather pendigits insects_reoccurring_tail occupancy room_occupancy"
rare="htru2 glass steel_plates avila covertype_15k room_occupancy wall_following"

case ${1:-} in
sets)
	echo "| stream | samples | error | coverage | off by | worst tenth off by | mean size | empty |"
	echo "|---|---|---|---|---|---|---|---|"
	for f in "$data"/*.csv.gz; do
		set=$(basename "$f" .csv.gz)
		fields "$set" | awk -F: -v set="$set" '
			$1 == "\"samples\"" { n = $2 }
			$1 == "\"error\"" && !e++ { err = $2 }
			$1 == "\"size\"" { size = $2 }
			$1 == "\"empty\"" { empty = $2 }
			$1 == "\"coverage\"" { if (!k++) cov = $2; else { d = $2 - 0.9; if (d < 0) d = -d; if (d > worst) worst = d } }
			END { printf "| %s | %d | %.4f | %.4f | %+.4f | %.4f | %.3f | %.3f |\n", set, n, err, cov, cov - 0.9, worst, size, empty }'
	done ;;
plot)
	files=()
	for set in electricity rialto insects_reoccurring_tail gas_drift_partial weather wall_following pendigits outdoor; do files+=("$data/$set.csv.gz"); done
	"$EDGE" eval "${files[@]}" --plot-sets docs/results/sets.svg ;;
late)
	echo "| stream | at once | 20 rows late | 100 | 1000 | a tenth of the labels, 100 |"
	echo "|---|---|---|---|---|---|"
	for set in $late; do
		printf '| %s |' "$set"
		for flags in "" "--delay 20" "--delay 100" "--delay 1000" "--delay 100 --label-fraction 0.1"; do
			# shellcheck disable=SC2086
			fields "$set" --first 10000 $flags | awk -F: '$1 == "\"coverage\"" && !k++ { c = $2 } $1 == "\"size\"" { s = $2 } END { printf " %.3f, %.2f |", c, s }'
		done
		echo
	done ;;
drift)
	files=()
	for set in waveform pendigits satellite wall_following; do files+=("$data/$set.csv.gz"); done
	"$EDGE" eval "${files[@]}" --shuffle 1 --first 8000 --abrupt 2000 --plot docs/results/drift.svg ;;
actions)
	for kind in synthetic real; do
		echo "| $kind | drifts | none | forget | reseed | rollback |"
		echo "|---|---|---|---|---|---|"
		sets=$synthetic flags=(--shuffle 1 --first 8000 --abrupt 2000)
		[ $kind = synthetic ] || { sets=$changing flags=(--first 10000); }
		for set in $sets; do
			for action in none forget reseed rollback; do fields "$set" "${flags[@]}" --drift-action $action; done | awk -F: -v set="$set" '
				$1 == "\"dataset\"" { k++; e = l = 0 }
				$1 == "\"error\"" && !e++ { err[k] = $2 }
				$1 == "\"nll\"" && !l++ { nll[k] = $2 }
				$1 == "\"since\"" && k == 1 { drifts++ }
				END { printf "| %s | %d |", set, drifts; for (i = 1; i <= k; i++) printf " %.4f/%.4f |", err[i], nll[i]; print "" }'
		done
		echo
	done ;;
alarms)
	echo "| stream | adwin: log loss | error | novelty | page-hinkley: log loss | error | novelty |"
	echo "|---|---|---|---|---|---|---|"
	for set in $synthetic; do
		printf '| %s |' "$set"
		for detector in adwin page-hinkley; do
			for on in log_loss error novelty; do
				flags=(--shuffle 1 --first 8000 --drift-detector $detector --drift-on $on)
				still=$(fields "$set" "${flags[@]}" | grep -c '^"since"' || true)
				found=$(fields "$set" "${flags[@]}" --abrupt 2000 | awk -F: '$1 == "\"n\"" { n = $2 } $1 == "\"since\"" && n > 2000 && !found++ { print n - 2000 }')
				printf ' %s, %s |' "$still" "${found:-never}"
			done
		done
		echo
	done ;;
weights)
	echo "| stream | rarest class | balanced accuracy, plain | balanced | macro-F1 | balanced | error | balanced | nll | balanced |"
	echo "|---|---|---|---|---|---|---|---|---|---|"
	for set in $rare; do
		for mode in none balanced; do fields "$set" --first 15000 --class-weights $mode; done | awk -F: -v set="$set" '
			$1 == "\"dataset\"" { k++; e = l = 0 }
			$1 == "\"error\"" && !e++ { err[k] = $2 }
			$1 == "\"nll\"" && !l++ { nll[k] = $2 }
			$1 == "\"balanced_accuracy\"" { b[k] = $2 }
			$1 == "\"macro_f1\"" { f[k] = $2 }
			$1 == "\"prevalence\"" && (rare == "" || $2 < rare) { rare = $2 }
			END { printf "| %s | %.4f | %.4f | %.4f | %.4f | %.4f | %.4f | %.4f | %.4f | %.4f |\n", set, rare, b[1], b[2], f[1], f[2], err[1], err[2], nll[1], nll[2] }'
	done ;;
*) sed -n '2,10p' "$0"; exit 2 ;;
esac
