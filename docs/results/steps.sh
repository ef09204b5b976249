#!/usr/bin/env bash
# One minibatch and one prediction of the default model, side by side: with the
# kernels of this program, with gonum's and, where libopenblas-dev is installed,
# with OpenBLAS. The three take turns, ROUNDS (5) times; the table has medians of
# the microseconds, and of the quotients of each round. SIZES chooses sizes, such
# as C=6/M=50.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
impls="dense gonum"
go test -c -o "$folder/dense" ./online
overlay() { # NAME: the files of model/dense/bench in the place of dense.go and triangle.go
	local dense=$PWD/model/dense
	printf '{"Replace": {"%s": "%s", "%s": "%s", "%s": ""}}' "$dense/dense.go" "$dense/bench/blas.go" \
		"$dense/triangle.go" "$dense/bench/$1.go" "$dense/bench/go.mod" >"$folder/$1.json"
}
overlay gonum
go test -overlay "$folder/gonum.json" -c -o "$folder/gonum" ./online
overlay useopenblas
if CGO_ENABLED=1 go test -overlay "$folder/useopenblas.json" -tags openblas -c -o "$folder/openblas" ./online 2>/dev/null; then
	impls="$impls openblas"
fi
for _ in $(seq "${ROUNDS:-5}"); do
	for impl in $impls; do
		"$folder/$impl" -test.run '^$' -test.bench "^Benchmark(Step|Predict)\$/${SIZES:-}" -test.benchtime "${TIME:-300ms}" |
			awk -v impl="$impl" '/^Benchmark/ { sub(/^Benchmark/, "", $1); sub(/-[0-9]+$/, "", $1); for (i = 2; i <= NF; i++) if ($i == "cpu-µs/op") print $1, impl, $(i-1) }'
	done
done | awk '
function median(list, n, a, i, j, t) {
	n = split(list, a, " ")
	for (i = 2; i <= n; i++) for (j = i; j > 1 && a[j-1]+0 > a[j]+0; j--) { t = a[j]; a[j] = a[j-1]; a[j-1] = t }
	return (a[int((n+1)/2)] + a[int(n/2)+1]) / 2
}
{
	if (!($1 in seen)) { seen[$1] = 1; order[++names] = $1 }
	us[$1, $2] = us[$1, $2] " " $3
	if ($2 == "dense") last[$1] = $3; else ratio[$1, $2] = ratio[$1, $2] " " $3/last[$1]
}
END {
	printf "%-40s %12s %12s %12s %12s %12s\n", "", "µs", "gonum µs", "OpenBLAS µs", "gonum/this", "OpenBLAS/this"
	for (i = 1; i <= names; i++) {
		k = order[i]
		printf "%-40s %12.1f %12.1f %12.1f %12.2f %12.2f\n", k, median(us[k, "dense"]), median(us[k, "gonum"]), median(us[k, "openblas"]), median(ratio[k, "gonum"]), median(ratio[k, "openblas"])
	}
}'
