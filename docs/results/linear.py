#!/usr/bin/env python3
"""Writes six streams of linear rules: linear.py FOLDER

The label is the class k with the largest (x - mean)·w_k, or in the files that end in n with the largest sum of that and
Gumbel noise.
"""
import sys

import numpy as np

rng = np.random.default_rng(5)
for name, rate, features, classes in (("counts30", 5, 30, 2), ("normal20", 0, 20, 3), ("normal60", 0, 60, 4)):
    x = rng.poisson(rate, (4000, features)).astype(float) if rate else rng.normal(size=(4000, features))
    w = rng.normal(size=(features, classes))
    value = (x - x.mean(0)) @ w
    noisy = value + rng.gumbel(size=value.shape)
    header = ",".join(f"f{i}" for i in range(features)) + ",label"
    for end, of in (("", value), ("n", noisy)):
        np.savetxt(f"{sys.argv[1]}/{name}{end}.csv", np.c_[x, of.argmax(1)], fmt="%g", delimiter=",", header=header, comments="")
