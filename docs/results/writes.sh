#!/usr/bin/env bash
# Prints the bytes that a labelled message writes to the disk and its syncs, durability
# strict, for RATES (1 10 100) messages a second during DURATION (320: one checkpoint by
# time) each: the kernel's count for the daemon (write_bytes of /proc/PID/io) and the
# calls that strace counts, after START (500) labels. The default model of 6 classes and
# 33 features. Needs mosquitto and strace.
set -euo pipefail
cd "$(dirname "$0")/../.."
start=${START:-500} seconds=${DURATION:-320} port=${PORT:-18854}
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; wait 2>/dev/null; rm -r "$work"' EXIT
edge=${EDGE:-$work/edge}
[ -x "$edge" ] || CGO_ENABLED=0 go build -trimpath -o "$edge" ./cmd/edge
printf 'listener %d 127.0.0.1\nallow_anonymous true\nset_tcp_nodelay true\nmax_queued_messages 0\n' "$port" >"$work/mosquitto.conf"
mosquitto -c "$work/mosquitto.conf" >/dev/null 2>&1 &

# rows N: features about the centre of a class, and the class
rows() {
	awk -v C=6 -v D=33 -v N="$1" 'BEGIN {
		srand(7); for (j = 0; j < D; j++) printf "f%d,", j; print "label"
		for (c = 0; c < C; c++) for (j = 0; j < D; j++) centre[c, j] = 4*rand() - 2
		for (i = 0; i < N; i++) {
			c = int(C*rand())
			for (j = 0; j < D; j++) printf "%.4f,", centre[c, j] + 2*rand() - 1
			print "c" c
		}
	}'
}

written() { awk '/^write_bytes/ { print $2 }' "/proc/$1/io"; }
count() { awk -v call="$1" '$NF == call { n = $4 } END { print n + 0 }' "$work/calls"; }

printf '%8s %9s %10s %8s %8s %8s\n' 'a second' messages 'B/message' syncs writes 'GB/day'
for rate in ${RATES:-1 10 100}; do
	messages=$((rate * seconds))
	rows $((start + messages)) >"$work/rows.csv"
	rm -f "$work"/edge.db*
	cat >"$work/edge.yaml" <<-EOF
		node: writes
		mqtt: {servers: ["mqtt://127.0.0.1:$port"], persistent_session: false}
		streams: {rows: {topics: [sensors/rows], dimension: 33}}
		models: {m: {streams: [rows], inducing: 50, classes: {open: true, max: 6}}}
		store: {path: "$work/edge.db"}
		http: {listen: ""}
	EOF
	"$edge" run -c "$work/edge.yaml" 2>"$work/log" &
	pid=$!
	for _ in $(seq 100); do grep -q 'connected to the broker' "$work/log" && break; sleep 0.1; done
	timeout $((seconds + 60)) "$edge" replay "$work/rows.csv" -c "$work/edge.yaml" --topic sensors/rows --first "$start" --prefix a >"$work/replay" 2>&1 || cat "$work/replay"
	sleep 2
	strace -f -c -e trace=fdatasync,fsync,pwrite64 -o "$work/calls" -p $pid 2>/dev/null &
	tracer=$!
	sleep 1
	before=$(written $pid)
	(head -n 1 "$work/rows.csv"; tail -n "$messages" "$work/rows.csv") >"$work/rest.csv"
	timeout $((seconds + 60)) "$edge" replay "$work/rest.csv" -c "$work/edge.yaml" --topic sensors/rows --rate "$rate" --prefix b >"$work/replay" 2>&1 || cat "$work/replay"
	sleep 1
	after=$(written $pid)
	kill -INT $tracer; wait $tracer 2>/dev/null || true
	kill $pid; wait $pid 2>/dev/null || true
	awk -v r="$rate" -v n="$messages" -v b="$((after - before))" -v s="$(($(count fdatasync) + $(count fsync)))" -v w="$(count pwrite64)" \
		'BEGIN { printf "%8d %9d %10.0f %8.2f %8.2f %8.2f\n", r, n, b/n, s/n, w/n, b/n*r*86400/1e9 }'
done
