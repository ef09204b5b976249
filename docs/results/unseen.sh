#!/bin/sh
# Prints what docs/results/fleet.md says of two daemons with half of the classes each: error and
# nll of one of them for rows of all classes, with the names of all classes and without. It needs
# mosquitto, mosquitto_pub and jq. EDGE may name a binary of edge, PORT a free port, PAUSE the seconds
# between two labels.
set -eu
cd "$(dirname "$0")/../.."
edge=${EDGE:-} port=${PORT:-21883} pause=${PAUSE:-0} folder=$(mktemp -d)
[ "$edge" ] || { edge=$folder/edge; go build -o "$edge" ./cmd/edge; }
started=
trap 'kill $started 2>/dev/null || true; rm -rf "$folder"' EXIT
printf 'listener %s 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\n' "$port" >"$folder/broker.conf"
mosquitto -c "$folder/broker.conf" >/dev/null 2>&1 &
started=$!
for _ in 1 2 3 4 5 6 7 8 9 10; do mosquitto_pub -p "$port" -t ready -n 2>/dev/null && break || sleep 1; done
gunzip -c ../shared/data/pendigits.csv.gz | sed 1d | shuf --random-source=go.sum -n 2700 >"$folder/rows"
tail -n 300 "$folder/rows" >"$folder/test"
for names in '' d0,d1,d2,d3,d4,d5,d6,d7,d8,d9; do
	nodes=
	for node in a b; do
		digits=01234
		[ $node = a ] || digits=56789
		head -n 2400 "$folder/rows" | awk -F, -v digits=$digits '{ label = $17; sub(/,[^,]*$/, ""); if (index(digits, label)) printf "{\"features\":[%s],\"label\":\"d%s\"}\n", $0, label }' >"$folder/$node.json"
		cat >"$folder/$node.yaml" <<YAML
node: $node
mqtt: {servers: ["mqtt://127.0.0.1:$port"]}
http: {listen: ""}
store: {path: $folder/$node.db}
streams: {s: {topics: [s/$node], features: [$(seq -s, -f f%g 0 15)]}}
models: {m: {streams: [s], classes: {names: [$names]}, fleet: {concept: digits, unseen: mix, interval: 1s, merge_every: 1s}}}
YAML
		rm -f "$folder/$node.db"
		mosquitto_pub -p "$port" -r -n -t edge/fleet/digits/$node
		"$edge" run -c "$folder/$node.yaml" 2>/dev/null &
		nodes="$nodes $!" started="$started $!"
	done
	sleep 3
	senders=
	for node in a b; do
		while IFS= read -r line; do
			printf '%s\n' "$line"
			[ "$pause" = 0 ] || sleep "$pause"
		done <"$folder/$node.json" | mosquitto_pub -p "$port" -q 1 -t s/$node -l &
		senders="$senders $!"
	done
	wait $senders
	sleep 15
	kill $nodes
	wait $nodes || true
	{ seq -s, -f f%g 0 15 | sed 's/$/,label/'; sed 's/,\([0-9]*\)$/,d\1/' "$folder/test"; } >"$folder/test.csv"
	"$edge" predict -c "$folder/a.yaml" --state "$folder/a.db" --label label "$folder/test.csv" | jq -rs --arg names "${names:-none}" '
		"names \($names): error \(map(select(.class != .label)) | length / 300), nll \(map(-([.probs[.label] // 0, 1e-6] | max | log)) | add / 300)"'
done
