#!/bin/sh
# Prints the tables of docs/results/asking.md and draws its figures, docs/results/asking-*.svg;
# or those of the data sets that are named as arguments. DATA is the folder of the
# data files, EDGE may name a binary of edge-lab, SEEDS is the number of runs.
set -eu
cd "$(dirname "$0")/../.."
data=${DATA:-../shared/data}
edge=${EDGE:-go run ./cmd/edge-lab}
seeds=${SEEDS:-3}
[ $# -gt 0 ] || set -- wall_following gas_drift_partial satellite pendigits
for set; do
	budgets=0.02,0.05,0.1,0.2,0.3,0.5
	[ "$set" != pendigits ] || budgets=0.02,0.05,0.1,0.2
	file="$edge eval $data/$set.csv.gz"
	$file --query margin,entropy,bald,random --budget $budgets --seeds $seeds --against-full --plot "docs/results/asking-$set.svg"
	$file --query margin,bald --budget 0.1 --inducing 50 --seeds $seeds # as few inducing points as a model that does not ask
	$file --inducing 100                                                # as many, taught every label before the next row
	$file --query random --budget 1                                     # every label, one by one, without their order
	# without the order of the file, in which neighbours are alike
	[ "$set" != satellite ] || $file --query margin,bald,random --budget 0.1,0.2,0.3 --shuffle 1 --seeds $seeds --against-full
done
