#!/usr/bin/env bash
# Prints the time from the start of a daemon (the static binary) without a state
# to its first answer over mosquitto, in ms: the least and the median of ROUNDS
# (9). The broker keeps a sample, which it sends as soon as the daemon has
# subscribed. The second line is the start of the program alone. EDGE names
# another binary to measure.
set -euo pipefail
cd "$(dirname "$0")/../.."
rounds=${ROUNDS:-9} port=${PORT:-18856}
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; wait 2>/dev/null; rm -r "$work"' EXIT
edge=${EDGE:-$work/edge}
[[ -v EDGE ]] || CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$edge" ./cmd/edge
printf 'listener %d 127.0.0.1\nallow_anonymous true\nset_tcp_nodelay true\n' "$port" >"$work/mosquitto.conf"
mosquitto -c "$work/mosquitto.conf" >/dev/null 2>&1 &
cat >"$work/edge.yaml" <<-END
	node: start
	mqtt: {servers: ["mqtt://127.0.0.1:$port"], persistent_session: false}
	streams: {rows: {topics: [sensors/rows], dimension: 4, allow_retained: true}}
	models: {m: {streams: [rows]}}
	store: {path: "$work/edge.db"}
	http: {listen: "127.0.0.1:$((port + 1))"}
END
sleep 0.5
mosquitto_pub -p "$port" -t sensors/rows -r -q 1 -m '[1, 2, 3, 4]'

summary() { # description: of the nanoseconds on standard input
	sort -n | awk -v what="$1" '{ v[NR] = $1/1e6 } END { printf "%-16s least %6.1f median %6.1f ms\n", what, v[1], v[int((NR + 1)/2)] }'
}

for _ in $(seq "$rounds"); do
	rm -f "$work"/edge.db*
	mosquitto_sub -p "$port" -t edge/start/m/prediction -C 1 >/dev/null &
	answer=$!
	sleep 0.3
	began=$(date +%s%N)
	"$edge" run -c "$work/edge.yaml" 2>/dev/null &
	pid=$!
	wait $answer
	echo $(($(date +%s%N) - began))
	kill $pid
	wait $pid 2>/dev/null || true
done | summary 'first answer'
for _ in $(seq "$rounds"); do
	began=$(date +%s%N)
	"$edge" version >/dev/null
	echo $(($(date +%s%N) - began))
done | summary 'edge version'
