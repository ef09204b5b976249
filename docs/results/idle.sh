#!/usr/bin/env bash
# Prints what a daemon (the static binary) takes while nothing arrives, as Linux
# counts it over IDLE (60) seconds: the times that its threads woke up
# (voluntary_ctxt_switches in /proc/PID/task/*/status) and their processor time
# (/proc/PID/task/*/schedstat), for a second. It runs with mosquitto, the default
# keepalive and page and metrics served but not read: with a new state, and
# after LABELS (500) labels. EDGE names another binary to measure.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${IDLE:-60} labels=${LABELS:-500} port=${PORT:-18854}
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; wait 2>/dev/null; rm -r "$work"' EXIT
edge=${EDGE:-$work/edge}
[[ -v EDGE ]] || CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$edge" ./cmd/edge
printf 'listener %d 127.0.0.1\nallow_anonymous true\n' "$port" >"$work/mosquitto.conf"
mosquitto -c "$work/mosquitto.conf" >/dev/null 2>&1 &
cat >"$work/edge.yaml" <<-END
	node: idle
	mqtt: {servers: ["mqtt://127.0.0.1:$port"]}
	streams: {rows: {topics: [sensors/rows], dimension: 4}}
	models: {m: {streams: [rows]}}
	store: {path: "$work/edge.db"}
	http: {listen: "127.0.0.1:$((port + 1))"}
END

counts() { # pid: wake-ups and nanoseconds of all threads since their start
	cat "/proc/$1/task/"*/status "/proc/$1/task/"*/schedstat |
		awk '/^voluntary_ctxt_switches/ { n += $2 } /^[0-9]+ [0-9]+ [0-9]+$/ { ns += $1 } END { printf "%d %d", n, ns }'
}

report() { # description, pid
	read -r wakes ns <<<"$(counts "$2")"
	sleep "$seconds"
	read -r wakes2 ns2 <<<"$(counts "$2")"
	awk -v what="$1" -v n=$((wakes2 - wakes)) -v ns=$((ns2 - ns)) -v s="$seconds" \
		'BEGIN { printf "%-28s %12.2f %18.3f\n", what, n/s, ns/s/1e6 }'
}

"$edge" run -c "$work/edge.yaml" 2>"$work/log" &
pid=$!
for _ in $(seq 100); do grep -q 'connected to the broker' "$work/log" && break; sleep 0.1; done
sleep 15 # until memory of the start is returned
printf '%-28s %12s %18s\n' 'each second' wake-ups 'processor ms'
report 'nothing learnt' $pid
awk -v N="$labels" 'BEGIN { srand(7); for (i = 0; i < N; i++) {
	c = int(3*rand()); printf "{\"features\":[%f,%f,%f,%f],\"label\":\"c%d\"}\n", c + rand(), c*rand(), rand() - c, rand(), c } }' |
	mosquitto_pub -p "$port" -t sensors/rows -q 1 -l
sleep 45 # until all are learnt and their memory is returned
report "$labels labels learnt" $pid
