#!/usr/bin/python3
"""Writes five streams whose labels are noisy, FOLDER/NAME.csv: docs/results/noisy.py FOLDER

Three are of scikit-learn's make_classification, which gives a part of the labels by chance. Two are of
normal features, whose labels are drawn with log odds that a few of the features tell.
It needs python3-sklearn.
"""
import os
import sys

import numpy as np
from sklearn.datasets import make_classification

ROWS = 3000
rng = np.random.default_rng(0)


def write(name, x, y):
    columns = [f"f{j}" for j in range(x.shape[1])] + ["label"]
    formats = ["%.6g"] * x.shape[1] + ["%d"]
    np.savetxt(os.path.join(sys.argv[1], name + ".csv"), np.c_[x, y], delimiter=",", header=",".join(columns), comments="", fmt=formats)


def drawn(log_odds):
    return rng.random(ROWS) < 1 / (1 + np.exp(-log_odds))


for seed, (informative, classes, flipped, weights) in enumerate(((5, 3, 0.3, None), (6, 5, 0.5, None), (4, 2, 0.3, [0.8, 0.2]))):
    write(f"flipped_{seed}", *make_classification(
        ROWS, n_informative=informative, n_classes=classes, flip_y=flipped, weights=weights, random_state=seed))

x = rng.normal(size=(ROWS, 5))
write("product", x, drawn(x[:, 0] + 0.6 * x[:, 1] * x[:, 2]))
x = rng.normal(size=(ROWS, 30))
write("sum", x, drawn(0.5 * x[:, :6].sum(1)))
