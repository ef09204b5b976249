#!/usr/bin/env bash
# Prints how long a daemon (the static binary) takes after kill -9 with LABELS
# (5000) labels in the journal at (C, M, D) = (10, 100, 128): from its start to
# its first prediction, to the end of the replay, and the processor time of the
# whole start. EDGE names another program to measure, such as an earlier one;
# ROUNDS (3) starts, each killed before its first checkpoint. Needs mosquitto and
# its clients.
set -euo pipefail
cd "$(dirname "$0")/../.."
labels=${LABELS:-5000} port=${PORT:-18854} C=10 M=100 D=128
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; wait 2>/dev/null; rm -r "$work"' EXIT
edge=$work/edge
CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$edge" ./cmd/edge
printf 'listener %d 127.0.0.1\nallow_anonymous true\nset_tcp_nodelay true\nmax_queued_messages 0\n' "$port" >"$work/mosquitto.conf"
mosquitto -c "$work/mosquitto.conf" >/dev/null 2>&1 &
awk -v C=$C -v D=$D -v N="$labels" 'BEGIN {
	srand(7); for (j = 0; j < D; j++) printf "f%d,", j; print "label"
	for (c = 0; c < C; c++) for (j = 0; j < D; j++) centre[c, j] = 4*rand() - 2
	for (i = 0; i < N; i++) {
		c = int(C*rand())
		for (j = 0; j < D; j++) printf "%.4f,", centre[c, j] + 2*rand() - 1
		print "c" c
	}
}' >"$work/rows.csv"
cat >"$work/edge.yaml" <<-EOC
	node: recovery
	mqtt: {servers: ["mqtt://127.0.0.1:$port"], persistent_session: false}
	streams: {rows: {topics: [sensors/rows], dimension: $D}}
	models: {m: {streams: [rows], inducing: $M, classes: {open: true, max: $C}}}
	store: {path: "$work/edge.db", checkpoint: {every: 24h, samples: 0, size: 0}}
	http: {listen: ""}
EOC
now() { date +%s%N; }
sample=$(sed -n 2p "$work/rows.csv" | sed 's/,[^,]*$//')

"$edge" run -c "$work/edge.yaml" 2>"$work/log" &
pid=$!
until grep -q 'connected to the broker' "$work/log"; do sleep 0.1; done
"$edge" replay "$work/rows.csv" -c "$work/edge.yaml" --topic sensors/rows --prefix a >"$work/replay" 2>&1 || { cat "$work/replay"; exit 1; }
sleep 2
kill -9 $pid; wait $pid 2>/dev/null || true
cp "$work/edge.db" "$work/crashed.db"

printf '%-10s %16s %16s %16s\n' "" "first answer, s" "replayed, s" "processor, s"
measure() { # name, program
	cp "$work/crashed.db" "$work/edge.db"
	mosquitto_sub -p "$port" -t edge/recovery/m/prediction -C 1 >"$work/answer" &
	local listener=$! start answered pid
	while :; do echo "[$sample]"; sleep 0.02; done | mosquitto_pub -p "$port" -t sensors/rows -q 0 -l &
	local publisher=$!
	start=$(now)
	"$2" run -c "$work/edge.yaml" 2>"$work/log" &
	pid=$!
	wait $listener; answered=$(now)
	kill $publisher 2>/dev/null || true
	until grep -q 'model ready' "$work/log"; do sleep 0.01; done
	local replayed=$(now) cpu
	cpu=$(awk '{ print ($14 + $15)/100 }' "/proc/$pid/stat")
	kill -9 $pid; wait $pid 2>/dev/null || true
	echo "$1 $start $answered $replayed $cpu" | awk '{ printf "%-10s %16.2f %16.2f %16.2f\n", $1, ($3-$2)/1e9, ($4-$2)/1e9, $5 }'
	grep -o 'digest=[0-9a-f]*' "$work/log" | tail -n 1 >>"$work/digests"
}
for _ in $(seq "${ROUNDS:-3}"); do
	[ -z "${EDGE:-}" ] || measure earlier "$EDGE"
	measure this "$edge"
done
[ "$(sort -u "$work/digests" | wc -l)" = 1 ] || { echo "the digests differ" >&2; exit 1; }
