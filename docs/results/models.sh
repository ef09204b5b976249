#!/usr/bin/env bash
# Prints the memory of a daemon (the static binary) with MODELS (50) models that
# have learnt LABELS (150) labels each, of C classes and D features (SIZE, 3,8; the
# default model otherwise), by /proc/PID/status: after the start, while they learn,
# and idle. EDGE names another program to measure beside it, such as an earlier
# one. With HTTP (an address), PPROF=true and PROFILE (a path) it also stores a heap
# profile. Needs mosquitto and its clients.
set -euo pipefail
cd "$(dirname "$0")/../.."
models=${MODELS:-50} labels=${LABELS:-150} port=${PORT:-18855}
IFS=, read -r C D <<<"${SIZE:-3,8}"
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; wait 2>/dev/null; rm -r "$work"' EXIT
edge=$work/edge
CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$edge" ./cmd/edge
printf 'listener %d 127.0.0.1\nallow_anonymous true\nset_tcp_nodelay true\nmax_queued_messages 0\n' "$port" >"$work/mosquitto.conf"
mosquitto -c "$work/mosquitto.conf" >/dev/null 2>&1 &
awk -v C="$C" -v D="$D" -v N="$labels" 'BEGIN {
	srand(7); for (c = 0; c < C; c++) for (j = 0; j < D; j++) centre[c, j] = 4*rand() - 2
	for (i = 0; i < N; i++) {
		c = int(C*rand()); printf "{\"features\":["
		for (j = 0; j < D; j++) printf "%s%.4f", j ? "," : "", centre[c, j] + 2*rand() - 1
		print "],\"label\":\"c" c "\"}"
	}
}' >"$work/rows.json"
{
	echo "node: models"
	echo "mqtt: {servers: [\"mqtt://127.0.0.1:$port\"], persistent_session: false}"
	echo "store: {path: \"$work/edge.db\"}"
	echo "http: {listen: \"${HTTP:-}\", pprof: ${PPROF:-false}}"
	echo "streams:"
	for i in $(seq "$models"); do echo "  s$i: {topics: [sensors/$i], dimension: $D}"; done
	echo "models:"
	for i in $(seq "$models"); do echo "  m$i: {streams: [s$i], classes: {open: true}}"; done
} >"$work/edge.yaml"

# quiet PID: waits until the process has used less than 100 ms of processor time
# in 12 seconds
quiet() {
	local before now
	now=$(awk '{ print $14 + $15 }' "/proc/$1/stat")
	while before=$now; do
		sleep 12
		now=$(awk '{ print $14 + $15 }' "/proc/$1/stat")
		((now - before >= 10)) || return 0
	done
}
report() { # description, pid
	awk -v what="$1" -v n="$models" '/^(VmHWM|VmRSS|RssAnon|RssFile):/ { v[$1] = $2*1024/1e6 }
		END { printf "%-36s %6.1f %6.1f %6.1f %6.1f\n", what, v["RssAnon:"], v["RssFile:"], v["VmRSS:"], v["VmHWM:"] }' "/proc/$2/status"
}
measure() { # name, program
	rm -f "$work"/edge.db*
	"$2" run -c "$work/edge.yaml" 2>"$work/log" &
	local pid=$!
	until grep -q 'connected to the broker' "$work/log"; do sleep 0.1; done
	sleep 2; report "$1: started" $pid
	for i in $(seq "$models"); do mosquitto_pub -p "$port" -t "sensors/$i" -q 1 -l <"$work/rows.json"; done
	report "$1: $labels labels each, learning" $pid
	quiet $pid; report "$1: idle" $pid
	[ -z "${PROFILE:-}" ] || curl -s "http://$HTTP/debug/pprof/heap" >"$PROFILE.$1"
	kill $pid; wait $pid 2>/dev/null || true
}
printf '%-36s %6s %6s %6s %6s\n' "MB, $models models ($C, 50, $D)" anon file RSS peak
[ -z "${EDGE:-}" ] || measure earlier "$EDGE"
measure this "$edge"
