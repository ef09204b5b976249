#!/usr/bin/python3
"""Writes twelve streams that are made by rules, FOLDER/NAME.csv: docs/results/generated.py FOLDER

The rules are those of usual generators of streams: loan applications with two of the rules
of Agrawal et al. (1993), a digit of seven segments of which a tenth are wrong (Breiman et al.,
1984), Gaussian clusters that move, the rules of STAGGER (Schlimmer & Granger, 1986), a sine whose
classes change places, Friedman's function (1991) in four classes beside features with heavy tails, and
others. No constant of edge was chosen by them.
"""
import os
import sys

import numpy as np

ROWS = 4000
rng = np.random.default_rng(11)


def write(name, x, y):
    with open(os.path.join(sys.argv[1], name + ".csv"), "w") as f:
        f.write(",".join(f"f{j}" for j in range(x.shape[1])) + ",label\n")
        for row, label in zip(x, y):
            f.write(",".join("%.5g" % v for v in row) + f",c{label}\n")


def agrawal(n, rule):
    salary = 20000 + 130000 * rng.random(n)
    commission = np.where(salary >= 75000, 0, 10000 + 65000 * rng.random(n))
    age = 20 + 60 * rng.random(n)
    education, car, zipcode = rng.integers(0, 5, n), 1 + rng.integers(0, 20, n), rng.integers(0, 9, n)
    value, years, loan = (9 - zipcode) * 100000 * (0.5 + rng.random(n)), 1 + 29 * rng.random(n), 500000 * rng.random(n)
    between = lambda v, lo, hi: (v >= lo) & (v <= hi)
    by_age = lambda young, middle, old: np.where(age < 40, young, np.where(age < 60, middle, old))
    y = {
        2: lambda: by_age(between(salary, 50000, 100000), between(salary, 75000, 125000), between(salary, 25000, 75000)),
        3: lambda: by_age(education <= 1, between(education, 1, 3), education >= 2),
        7: lambda: 2 * (salary + commission) / 3 - loan / 5 > 20000,
    }[rule]()
    return np.c_[salary, commission, age, education, car, zipcode, value, years, loan], y.astype(int)


def joined(*parts):
    return np.concatenate([x for x, _ in parts]), np.concatenate([y for _, y in parts])


def led():
    segments = np.array([[int(s) for s in digit] for digit in
                         "1110111 0010010 1011101 1011011 0111010 1101011 1101111 1010010 1111111 1111011".split()])
    y = rng.integers(0, 10, ROWS)
    x = segments[y] ^ (rng.random((ROWS, 7)) < 0.1)
    return np.c_[x, rng.integers(0, 2, (ROWS, 17))], y


def moving_clusters(clusters=20, features=10, classes=5):
    centre, label = rng.random((clusters, features)), rng.integers(0, classes, clusters)
    width = 0.03 + 0.15 * rng.random(clusters)
    speed = rng.normal(size=(clusters, features))
    speed *= 0.0002 / np.linalg.norm(speed, axis=1)[:, None]
    x, y = np.empty((ROWS, features)), np.empty(ROWS, int)
    for i in range(ROWS):
        k = rng.integers(clusters)
        x[i], y[i] = centre[k] + 2 * width[k] * rng.normal(size=features) / np.sqrt(features), label[k]
        centre += speed
    return x, y


def stagger(n, rule):
    size, colour, shape = rng.integers(0, 3, (3, n))
    y = [(size == 0) & (colour == 0), (colour == 1) | (shape == 0), size > 0][rule]
    return np.c_[size, colour, shape], y.astype(int)


def sine():
    x = rng.random((ROWS, 4))
    y = (x[:, 1] < np.sin(3 * x[:, 0])).astype(int)
    y[ROWS // 2:] = 1 - y[ROWS // 2:]
    return x, y


def friedman():
    x = rng.random((ROWS, 5))
    f = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4] + rng.normal(size=ROWS)
    return np.c_[x, rng.standard_t(1.5, (ROWS, 5))], np.digitize(f, np.quantile(f, [0.25, 0.5, 0.75]))


def counts():
    rate, y = rng.gamma(0.5, 2, (6, 30)), rng.integers(0, 6, ROWS)
    return rng.poisson(0.7 * rate[y]), y


def parity():
    x = rng.normal(size=(ROWS, 8))
    return x, np.bitwise_xor.reduce(x[:, :3] > 0, axis=1).astype(int)


def ratios():
    y = rng.integers(0, 4, ROWS)
    shape = np.array([[1, 2, 4, 8], [8, 4, 2, 1], [1, 8, 1, 8], [3, 3, 3, 3]])[y]
    return np.exp(rng.normal(size=(ROWS, 1))) * shape * np.exp(0.3 * rng.normal(size=(ROWS, 4))), y


def states():
    mean, state, noise = 0.8 * rng.normal(size=(5, 6)), 0, np.zeros(6)
    x, y = np.empty((ROWS, 6)), np.empty(ROWS, int)
    for i in range(ROWS):
        if rng.random() < 0.01:
            state = rng.integers(5)
        noise = 0.95 * noise + 0.3 * rng.normal(size=6)
        x[i], y[i] = mean[state] + noise, state
    return x, y


def rare():
    y = np.where(rng.random(ROWS) < 0.03, 2, rng.integers(0, 2, ROWS))
    x = np.array([[0, 0, 0, 0], [1.5, 0, 1, 0], [0, 2, -1, 1]])[y] + rng.normal(size=(ROWS, 4))
    return x, np.where(rng.random(ROWS) < 0.05, rng.integers(0, 3, ROWS), y)


write("loans_two_rules", *joined(agrawal(ROWS // 2, 2), agrawal(ROWS // 2, 3)))
x, y = agrawal(ROWS, 7)
write("loans_noise", x, np.where(rng.random(ROWS) < 0.05, 1 - y, y))
write("digits_led", *led())
write("moving_clusters", *moving_clusters())
write("stagger", *joined(*[stagger(1000, rule) for rule in range(3)]))
write("sine_reversed", *sine())
write("friedman_tails", *friedman())
write("counts", *counts())
write("parity", *parity())
write("ratios", *ratios())
write("states", *states())
write("rare_noise", *rare())
