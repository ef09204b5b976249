#!/usr/bin/env bash
# Prints the memory of a daemon (the static binary) by /proc/PID/status, with
# mosquitto and its clients: after the start; after LABELS (1500) labels, once
# all are learnt; while 1000 samples arrive each second for BUSY (20) seconds,
# first without ids and then with ids, so that they wait for labels. Each row is
# measured with the default limit and with a memory_limit of 45MiB, 70 % of
# 64 MiB. SIZES and LIMITS choose rows.
#
# anon: heap, stacks and written data of the program, which stay in memory; file:
# pages of the program and of the state file, which the system reclaims when it
# needs memory.
set -euo pipefail
cd "$(dirname "$0")/../.."
labels=${LABELS:-1500} busy=${BUSY:-20} port=${PORT:-18853}
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; wait 2>/dev/null; rm -r "$work"' EXIT
edge=$work/edge
CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$edge" ./cmd/edge
printf 'listener %d 127.0.0.1\nallow_anonymous true\nset_tcp_nodelay true\nmax_queued_messages 0\n' "$port" >"$work/mosquitto.conf"
mosquitto -c "$work/mosquitto.conf" >/dev/null 2>&1 &

# rows C D N: features about the centre of a class, and the class
rows() {
	awk -v C="$1" -v D="$2" -v N="$3" 'BEGIN {
		srand(7); for (j = 0; j < D; j++) printf "f%d,", j; print "label"
		for (c = 0; c < C; c++) for (j = 0; j < D; j++) centre[c, j] = 4*rand() - 2
		for (i = 0; i < N; i++) {
			c = int(C*rand())
			for (j = 0; j < D; j++) printf "%.4f,", centre[c, j] + 2*rand() - 1
			print "c" c
		}
	}'
}

# thousands [id]: a thousand samples a second, without their labels
thousands() {
	for second in $(seq "$busy"); do
		for tenth in 1 2 3 4 5 6 7 8 9 10; do
			head -n $((100*tenth + 1)) "$work/rows.csv" | tail -n 100 |
				awk -F, -v id="$1" -v at="$second.$tenth" '{
					sub(/,[^,]*$/, ""); print (id == "" ? "" : "{\"id\":\"" at "-" NR "\",\"features\":") "[" $0 "]" (id == "" ? "" : "}")
				}'
			sleep 0.09
		done
	done
}

# quiet PID: waits until the process has used less than 50 ms of processor time
# in 12 seconds
quiet() {
	local before now
	now=$(awk '{ print $14 + $15 }' "/proc/$1/stat")
	while before=$now; do
		sleep 12
		now=$(awk '{ print $14 + $15 }' "/proc/$1/stat")
		((now - before >= 5)) || return 0
	done
}

report() { # description, pid
	awk -v what="$1" '/^(VmHWM|VmRSS|RssAnon|RssFile):/ { v[$1] = $2*1024/1e6 }
		END { printf "%-44s %6.1f %6.1f %6.1f %6.1f\n", what, v["RssAnon:"], v["RssFile:"], v["VmRSS:"], v["VmHWM:"] }' "/proc/$2/status"
}

printf '%-44s %6s %6s %6s %6s\n' "MB" anon file RSS peak
for size in ${SIZES:-6,50,33 10,100,128}; do
	IFS=, read -r C M D <<<"$size"
	rows "$C" "$D" $((labels > 5000 ? labels : 5000)) >"$work/rows.csv"
	for limit in ${LIMITS:-0 45MiB}; do
		rm -f "$work"/edge.db*
		cat >"$work/edge.yaml" <<-EOF
			node: memory
			mqtt: {servers: ["mqtt://127.0.0.1:$port"], persistent_session: false}
			streams: {rows: {topics: [sensors/rows], dimension: $D}}
			models: {m: {streams: [rows], inducing: $M, classes: {open: true, max: $C}}}
			store: {path: "$work/edge.db"}
			memory_limit: $limit
			http: {listen: ""}
		EOF
		"$edge" run -c "$work/edge.yaml" 2>"$work/log" &
		pid=$!
		for _ in $(seq 100); do grep -q 'connected to the broker' "$work/log" && break; sleep 0.1; done
		what="($C, $M, $D), limit $limit:"
		sleep 2; report "$what started" $pid
		"$edge" replay "$work/rows.csv" -c "$work/edge.yaml" --topic sensors/rows --first "$labels" --prefix a >"$work/replay" 2>&1 || { cat "$work/replay"; exit 1; }
		quiet $pid; report "$what $labels labels learnt, idle" $pid
		thousands '' | mosquitto_pub -p "$port" -t sensors/rows -q 1 -l
		report "$what 1000 samples a second" $pid
		thousands id | mosquitto_pub -p "$port" -t sensors/rows -q 1 -l
		report "$what the same with ids" $pid
		kill $pid; wait $pid 2>/dev/null || true
	done
done
