#!/usr/bin/env python3
"""Writes a shuffled data set of which all features, or every second one, move halfway.

    docs/results/moved.py FILE.csv.gz ROWS SEED [half] >moved.csv
    edge eval moved.csv

Each of these features x becomes 3·(x − mean) + mean + 20 deviations.
"""
import csv
import gzip
import random
import statistics
import sys

path, rows, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
step = 2 if "half" in sys.argv[4:] else 1
with gzip.open(path, "rt", newline="") as file:
    header, *all_rows = csv.reader(file)
random.Random(seed).shuffle(all_rows)
all_rows = all_rows[:rows]
moves = {}
for j in range(0, len(header) - 1, step):
    known = [float(row[j]) for row in all_rows if row[j]]
    moves[j] = statistics.fmean(known), statistics.pstdev(known)
out = csv.writer(sys.stdout, lineterminator="\n")
out.writerow(header)
for i, row in enumerate(all_rows):
    if 2 * i >= len(all_rows):
        for j, (mean, deviation) in moves.items():
            if row[j]:
                row[j] = repr(3 * (float(row[j]) - mean) + mean + 20 * deviation)
    out.writerow(row)
