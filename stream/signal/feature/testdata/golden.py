"""Prints golden.csv: the features of a_i = sin(0.3 i) + 0.1 (i mod 7), i = 0 … 31, and of
its first 30 and 31 values, from their definitions, with exact sums (math.fsum, statistics)
and the sum of the discrete Fourier transform itself."""

import cmath
import math
import statistics
from math import fsum


def features(a):
    n = len(a)
    m = fsum(a) / n
    b = [x - m for x in a]
    s = statistics.pstdev(a)
    k = [i - (n - 1) / 2 for i in range(n)]
    steps = [y - x for x, y in zip(a, a[1:])]
    yield "mean", m
    yield "log_sd", math.log10(s + 0.001)
    yield "min", min(a)
    yield "max", max(a)
    yield "slope", n * statistics.linear_regression(range(n), a).slope
    for h in (1, 2, 4, 8):
        yield f"acf{h}", fsum(b[i] * b[i - h] for i in range(h, n)) / n / s**2
    yield "skew", fsum(x**3 for x in b) / n / s**3
    yield "log_kurtosis", math.log(fsum(x**4 for x in b) / n / s**4)
    yield "crest", max(map(abs, b)) / s
    yield "sd", s
    yield "rms", math.sqrt(fsum(x * x for x in a) / n)
    yield "range", max(a) - min(a)
    yield "last", a[-1]
    yield "median", statistics.median(a)
    deciles = statistics.quantiles(a, n=20, method="inclusive")
    for p in (10, 25, 75, 90):
        yield f"q{p}", deciles[p // 5 - 1]
    yield "mcr", sum((x < 0) != (y < 0) for x, y in zip(b, b[1:])) / (n - 1)
    yield "mobility", statistics.pstdev(steps) / s
    yield "mad1", fsum(map(abs, steps)) / (n - 1)
    n = max(q for q in range(1, n + 1) if 210**20 % q == 0)
    b = b[len(b) - n :]
    w = [math.sin(math.pi * i / n) ** 2 for i in range(n)]
    norm = n * fsum(x * x for x in w) / 2
    f = [j / n for j in range(1, n // 2 + 1)]
    power = [abs(sum(x * y * cmath.exp(-2j * math.pi * g * i) for i, (x, y) in enumerate(zip(w, b)))) ** 2 / norm for g in f]
    total = fsum(power)
    yield "peak", f[power.index(max(power))]
    yield "centroid", fsum(x * y for x, y in zip(f, power)) / total
    yield "entropy", -fsum(p / total * math.log(p / total) for p in power) / math.log(n // 2)
    for j in range(1, 6):
        low, high = 2.0 ** (j - 7), 2.0 ** (j - 6)
        yield f"band{j}", math.log10(fsum(p for g, p in zip(f, power) if low <= g < high or g == high == 0.5) + 1e-12)


if __name__ == "__main__":
    a = [math.sin(0.3 * i) + 0.1 * (i % 7) for i in range(32)]
    print("# by golden.py (Python 3, exact sums); 32, 30 and 31 values, floor 0.001")
    for rows in zip(features(a), features(a[:30]), features(a[:31])):
        print(rows[0][0], *(format(value, ".15g") for _, value in rows), sep=",")
