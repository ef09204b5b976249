#!/bin/sh
# Plants each defect of patches/defects, and prints the first seed that finds it with
# its failure. It fails if SEEDS (2000) seeds do not find a defect, or if a defect no
# longer applies.
set -eu
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
missed=0
for patch in test/simulation/patches/defects/${1:-*}.txt; do
	name=$(basename "$patch" .txt)
	go run ./test/simulation/patch -o "$work/$name" test/simulation/patches/runtime.txt "$patch"
	go test -c -overlay "$work/$name/overlay.json" -o "$work/$name/test" ./test/simulation
	case $name in fleet-*) run=TestFleetSimulation ;; *) run=TestSimulation ;; esac
	if (cd test/simulation && "$work/$name/test" -test.run "^$run\$" -test.failfast -seeds "${SEEDS:-2000}") >"$work/$name/log" 2>&1; then
		echo "$name: not found"
		missed=1
		continue
	fi
	seed=$(sed -n 's|.*--- FAIL: Test[A-Za-z]*/\([0-9]*\) .*|\1|p' "$work/$name/log" | head -n 1)
	what=$(sed -n 's|^ *[a-z]*_test.go:[0-9]*: ||p' "$work/$name/log" | head -n 1)
	printf '%s\n' "$name: seed ${seed:-?}: ${what:-$(grep -m 1 '^panic' "$work/$name/log")}"
done
exit $missed
