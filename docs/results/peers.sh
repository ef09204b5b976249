#!/usr/bin/env bash
# Prints what programs take to answer JSON over mosquitto, side by side: an echo on paho,
# a daemon that predicts, and Node-RED, Telegraf and eKuiper, where node-red, telegraf and
# kuiperd are in the PATH. MESSAGES (20000) in a flood, and a quarter of them at 1000 a second, in each
# of five rounds; the table has medians (BenchmarkPeers of test/load).
set -euo pipefail
cd "$(dirname "$0")/../.."
export PATH=$PATH:/usr/sbin
for program in node-red telegraf; do
	command -v $program >/dev/null || continue
	printf '%s: ' $program
	timeout 60 $program --version 2>&1 | head -n 1 || true
done
go test ./test/load -run '^$' -bench Peers -benchtime "${MESSAGES:-20000}x" -timeout 1h
