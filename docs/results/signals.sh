#!/usr/bin/env bash
# Prints what docs/results/signals.md says of the raw signals in ../shared/data/raw. Run it
# from the repository: docs/results/signals.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
data=../shared/data/raw folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
go build -o "${EDGE:=$folder/edge}" ./cmd/edge

# stream NAME KEYS writes a configuration.
stream() {
	printf 'mqtt: {servers: [mqtt://127.0.0.1]}\nstreams: {%s: {topics: ["s/+"], topic_template: "s/{device}", time: t, %s}}\nmodels: {%s: {streams: [%s], temporal: "off"}}\n' "$1" "$2" "$1" "$1" >"$folder/$1.yaml"
}
stream wrist 'signals: [x, y, z], window: {length: 128, hop: 64, max_gap: 200ms}'
stream bearing 'signals: [a], window: {length: 1024, hop: 512, max_gap: 10ms}'
stream power 'signals: [power], derive: {p: log10(1 + power)}, window: {length: 5m, hop: 150s, resample: 1s, max_gap: 60s}'

for set in wrist bearing power; do
	"$EDGE" eval "$data/$set.csv.gz" -c "$folder/$set.yaml"
	"$EDGE" eval "$data/$set.csv.gz" -c "$folder/$set.yaml" --shuffle 1 --seeds 2
done
"$EDGE" windows "$data/wrist.csv.gz" -c "$folder/wrist.yaml" --lengths 32,64,128,192,256
"$EDGE" windows "$data/bearing.csv.gz" -c "$folder/bearing.yaml" --lengths 256,512,1024,2048
"$EDGE" windows "$data/power.csv.gz" -c "$folder/power.yaml" --lengths 1m,5m,20m
for set in wrist power; do
	"$EDGE" eval split "$data/$set.csv.gz" -c "$folder/$set.yaml" --split device
	"$EDGE" eval split "$data/$set.csv.gz" -c "$folder/$set.yaml" --split device --passes 20
done
"$EDGE" eval split "$data/bearing.csv.gz" -c "$folder/bearing.yaml" --split block
