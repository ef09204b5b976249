#!/usr/bin/env bash
# Prints the runs behind the tables of docs/results/fleet.md, those of one device and of all nodes. It
# takes about 50 minutes. DATA may name the folder with the data files, LAB a binary of edge-lab.
# noisy needs python3-sklearn.
#
#   docs/results/fleet.sh                    all tables
#   docs/results/fleet.sh newcomer bad       these tables
set -euo pipefail
cd "$(dirname "$0")/../.."
data=${DATA:-../shared/data} lab=${LAB:-} folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
[ "$lab" ] || { lab=$folder/edge-lab; CGO_ENABLED=0 go build -trimpath -o "$lab" ./cmd/edge-lab; }
drifting=(gas_drift_partial --shuffle 1 --shuffle-within 445,1244,1586,161,197,2300,294,470 --test-fraction 0)

# of scores a data set, and file a file.
of() { file "$data/$1.csv.gz" "${@:2}"; }
file() {
	printf '\n$ edge-lab fleet %s\n' "${*/*\//}"
	"$lab" fleet "$@"
}

# four scores four nodes on satellite and on pendigits.
four() { for set in satellite pendigits; do of $set --shuffle 1 --seeds 3 "$@"; done; }

result() {
	four
	for set in satellite pendigits; do of $set --shuffle 1 --seeds 4 --nodes 16 --every 50; done
	of "${drifting[@]}"
	of electricity --first 10000 --test-fraction 0
	four --forest off
	of "${drifting[@]}" --forest off
	for set in satellite pendigits; do of $set --shuffle 1 --nodes 16 --every 50 --forest off; done
}

rates() {
	for basis in own shared; do
		for rate in '--every 100' '--every 20' '--information 5' '--information 2.5'; do
			# shellcheck disable=SC2086
			of "${drifting[@]}" --batch 1 --basis $basis $rate
		done
	done
	for rate in '--every 100' '--every 20' '--information 5' '--information 2.5'; do
		# shellcheck disable=SC2086
		{
			of wall_following --test-fraction 0 --batch 4 $rate
			of satellite --shuffle 1 --batch 4 $rate
			of electricity --first 6000 --test-fraction 0 --batch 1 $rate
		}
	done
	for rate in '--information 5' '--information 2.5' '--information 1.25' '--information 2.5 --basis shared'; do
		# shellcheck disable=SC2086
		of "${drifting[@]}" --batch 1 --late --seeds 3 $rate
	done
}

newcomer() {
	of satellite --shuffle 1 --seeds 3 --nodes 5 --newcomer 400
	of pendigits --shuffle 1 --seeds 2 --nodes 5 --newcomer 400
	of satellite --shuffle 1 --seeds 3 --nodes 2 --newcomer 4600
	of satellite --shuffle 1 --seeds 3 --nodes 5 --newcomer 1150
	of pendigits --shuffle 1 --seeds 2 --nodes 2 --newcomer 8000
	of pendigits --shuffle 1 --seeds 2 --nodes 5 --newcomer 2000
}

classes() {
	four --by-class --test-fraction 0
	for set in satellite pendigits; do
		for shuffle in 1 2 3 4 5 6 7 8 9 10 11 12; do of $set --by-class --mix --shuffle $shuffle; done
		for shuffle in 1 2 3 4; do of $set --by-class --mix --shuffle $shuffle --declare=false; done
	done
}

bad() {
	of satellite --shuffle 1 --seeds 3 --bad labels
	of satellite --shuffle 1 --seeds 3 --bad huge
	of pendigits --shuffle 1 --seeds 2 --bad labels
	for set in satellite pendigits; do
		# shellcheck disable=SC2086
		for bad in '' '--bad labels --json' '--bad labels --trust -inf'; do of $set --shuffle 1 --seeds 3 --first 2600 --nodes 5 --newcomer 400 $bad; done
		for bad in 'labels' 'labels --boast 10' 'labels --boast 1000' 'next --boast 10' 'next --boast 100'; do
			# shellcheck disable=SC2086
			of $set --shuffle 1 --seeds 3 --first 1300 --test-fraction 0 --nodes 3 --newcomer 400 --bad $bad
		done
		of $set --shuffle 1 --seeds 3 --first 1300 --test-fraction 0 --nodes 3 --newcomer 400
	done
}

basis() {
	four --basis shared --forest off
	of "${drifting[@]}" --basis shared --forest off
	four --basis shared
	for set in satellite pendigits; do of $set --shuffle 1 --nodes 16 --every 50 --basis shared; done
	of satellite --shuffle 1 --basis shared --bad labels
}

devices() {
	for set in satellite pendigits dry_bean wall_following wisdm_windows; do of $set --shuffle 1 --seeds 3 --first 3000 --differ --scale own; done
	of steel_plates --shuffle 1 --seeds 3 --differ --scale own
	of "${drifting[@]}" --seeds 3 --differ --scale own
	of electricity --first 10000 --test-fraction 0 --differ --scale own
	for set in rialto eeg_eye_state; do of $set --first 4000 --test-fraction 0 --differ --scale own; done
}

# stretches scores the pieces of 4,000 rows of sets in their own order; the last one of a set may be shorter.
stretches() {
	for set in arem covertype_15k eeg_eye_state electricity hflights2011 insects_reoccurring_tail keystroke occupancy \
		outdoor rialto room_occupancy wall_following weather wisdm_windows; do
		gunzip -c "$data/$set.csv.gz" >"$folder/rows"
		for piece in 0 1 2 3; do
			sed -n "1p; $((4000 * piece + 2)),$((4000 * piece + 4001))p" "$folder/rows" >"$folder/${set}_$piece.csv"
			[ "$(wc -l <"$folder/${set}_$piece.csv")" -le 1000 ] || file "$folder/${set}_$piece.csv" --test-fraction 0
		done
	done
}

noisy() {
	docs/results/noisy.py "$folder"
	for set in flipped_0 flipped_1 flipped_2 product sum; do
		file "$folder/$set.csv" --shuffle 1 --seeds 2
		file "$folder/$set.csv" --shuffle 1 --seeds 2 --bad labels
	done
}

[ $# -gt 0 ] || set -- result rates newcomer classes bad basis devices stretches noisy
for table in "$@"; do $table; done
