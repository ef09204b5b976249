#!/usr/bin/python3
"""Judges learners of scikit-learn, xgboost, River and MOA on a stream, as edge-lab eval judges edge.

opponents.py FILE.csv --name NAME --batch 100 --out opponents.jsonl [--methods et_2000,svm_1000]

FILE.csv has a header line, the label in the last column and the rows in their order
(edge-lab rows writes such files). Each row is predicted before its label is known.

Protocols: --batch N, the labels of N rows become known after the last of them was
predicted (--batch 1: label before the next row); --delay N, the label of a row becomes
known N rows later. The classes are known from the start, as edge's are.

Every method runs twice: on the features, and with the order of the labels beside them
("label": the last known label, how many rows ago it was, and the probabilities of a chain
of labels at that distance). Each of the two is also judged after a calibration that is
fitted on the past ("temperature": exponent, and share of the class frequencies, with the
least log loss on the 1,000 latest rows whose labels are known).

The output has one JSON object a line: dataset, protocol, method, variant, seed, error, nll
(nats, probabilities clipped at 1e-6), ece (15 bins), n, seconds (processor), version.
Results that the output has already are not computed again.
"""
import argparse
import csv
import gzip
import json
import os
import sys
import warnings

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy starts threads

import adaptive
import numpy as np
import sklearn
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

try:
    import xgboost
except ImportError:
    xgboost = None

FLOOR = 1e-6       # of a probability, in the log loss
SHARE = 1e-3       # of the class frequencies in every prediction, before calibration
RECENT = 1000      # rows for the calibration
EXPONENTS = np.array([0.4, 0.55, 0.7, 0.85, 1, 1.2, 1.5, 2, 3])
SHARES = np.array([1e-4, 1e-3, 1e-2, 3e-2, 1e-1])


class Stream:
    """The rows of a stream and what is known of their labels when each is predicted."""

    def __init__(self, x, y, classes, batch, delay):
        self.x, self.y, self.classes, self.n = x, y, classes, len(y)
        rows = np.arange(self.n)
        self.known = np.maximum(rows - delay, 0) if delay else rows // batch * batch  # labels known at row t
        self.piece = 16 if delay else batch  # rows that one state of a learner predicts at least
        self.distance = rows - self.known + 1  # from the last known label
        self.frequencies, self.chain = self.orders()

    def orders(self):
        """Class frequencies, and the chain of labels at the row's distance; both smoothed, n × C."""
        far, c = int(self.distance.max()), self.classes
        moves = np.zeros((far + 1, c, c))  # at each distance
        counts = np.ones(c)
        frequencies, chain = np.empty((self.n, c)), np.empty((self.n, c))
        done, h = 0, np.arange(1, far + 1)
        for t in range(self.n):
            k = self.known[t]
            while done < k:  # the label of row done is now known
                near = h[:done]
                np.add.at(moves, (near, self.y[done - near], self.y[done]), 1)
                counts[self.y[done]] += 1
                done += 1
            prior = counts / counts.sum()
            frequencies[t] = chain[t] = prior
            if k:
                row = moves[self.distance[t], self.y[k - 1]]
                chain[t] = (row + 2 * prior) / (row.sum() + 2)
        return frequencies, chain

    def with_order(self):
        """The features, and beside them what is known of the order of the labels."""
        last = np.zeros((self.n, self.classes))
        seen = self.known > 0
        last[seen, self.y[self.known[seen] - 1]] = 1
        return np.hstack([self.x, last, self.distance[:, None] / self.distance.max(), self.chain])


class Refitted:
    """A learner that is fitted anew on the latest rows with labels."""

    def __init__(self, make, window):
        self.make, self.window = make, window

    def update(self, x, y, classes, known):
        first = max(0, known - self.window)
        x, y = x[first:known], y[first:known]
        self.present, index = np.unique(y, return_inverse=True)
        self.model = None
        if len(self.present) > 1:
            self.model = self.make(np.bincount(index)).fit(x, index)

    def predict(self, x, classes):
        p = np.zeros((len(x), classes))
        p[:, self.present] = 1 if self.model is None else self.model.predict_proba(x)
        return p


class Incremental:
    """A learner that goes over each piece of new rows, in units of their past deviation."""

    def __init__(self, model, passes, rng):
        self.model, self.passes, self.rng, self.seen = model, passes, rng, 0
        self.sum = self.squares = 0.0

    def scale(self, x):
        mean = self.sum / self.seen
        deviation = np.sqrt(np.maximum(self.squares / self.seen - mean**2, 1e-12))
        return np.clip((x - mean) / deviation, -8, 8)

    def update(self, x, y, classes, known):
        new = slice(self.seen, known)
        if known == self.seen:
            return
        self.sum, self.squares = self.sum + x[new].sum(0), self.squares + (x[new] ** 2).sum(0)
        self.seen = known
        rows = self.scale(x[new])
        for _ in range(self.passes):
            order = self.rng.permutation(len(rows)) if self.passes > 1 else np.arange(len(rows))
            for part in np.array_split(order, max(1, len(order) // 32)) if self.passes > 1 else [order]:
                self.model.partial_fit(rows[part], y[new][part], classes=np.arange(classes))

    def predict(self, x, classes):
        return np.nan_to_num(self.model.predict_proba(self.scale(x)), nan=1 / classes)


def scaled(model):
    return make_pipeline(StandardScaler(), model)


def svm(_):
    return scaled(SVC(C=10, probability=True, random_state=0))


def methods(seed):
    """The methods by name."""
    rng = np.random.RandomState(seed)

    def forest(kind, window):
        return lambda: Refitted(lambda _: kind(100, random_state=seed, n_jobs=1), window)

    result = {
        "et_1000": forest(ExtraTreesClassifier, 1000),
        "et_2000": forest(ExtraTreesClassifier, 2000),
        "rf_2000": forest(RandomForestClassifier, 2000),
        "et_all_features_2000": lambda: Refitted(
            lambda _: ExtraTreesClassifier(100, max_features=None, random_state=seed, n_jobs=1), 2000),
        "hgb_2000": lambda: Refitted(
            lambda c: HistGradientBoostingClassifier(max_iter=60, early_stopping=False, random_state=seed,
                                                     min_samples_leaf=int(np.clip(c.sum() // 20, 2, 20))), 2000),
        "svm_1000": lambda: Refitted(svm, 1000),
        "knn_1000": lambda: Refitted(
            lambda c: scaled(KNeighborsClassifier(min(10, c.sum()), weights="distance")), 1000),
        "softmax_2000": lambda: Refitted(lambda _: scaled(LogisticRegression(C=1, max_iter=100)), 2000),
        "softmax_sgd": lambda: Incremental(
            SGDClassifier(loss="log_loss", average=True, learning_rate="constant", eta0=0.03, random_state=seed), 1, rng),
        "naive_bayes": lambda: Incremental(GaussianNB(var_smoothing=1e-3), 1, rng),
        "mlp_x10": lambda: Incremental(
            MLPClassifier((100,), batch_size=32, learning_rate_init=0.002, random_state=seed), 10, rng),
    }
    if xgboost is not None:
        result["xgb_2000"] = lambda: Refitted(
            lambda _: xgboost.XGBClassifier(n_estimators=60, max_depth=5, learning_rate=0.2, subsample=0.8,
                                            tree_method="hist", n_jobs=1, verbosity=0, random_state=seed), 2000)
    return result | adaptive.methods(seed)


def predictions(stream, x, learner, stride):
    """The probabilities of every row, n × C, before its label is known."""
    p = np.full((stream.n, stream.classes), 1 / stream.classes)
    for first, last, known in blocks(stream, learner, stride):
        learner.update(x, stream.y, stream.classes, known)
        p[first:last] = learner.predict(x[first:last], stream.classes)
    if isinstance(learner, adaptive.Process):
        learner.close()
    return (1 - SHARE) * p + SHARE * stream.frequencies


def blocks(stream, learner, stride):
    """Rows first to last − 1 that one state of the learner predicts, and its number of labels."""
    result = []
    for first in range(0, stream.n, stream.piece):
        last, known = min(stream.n, first + stream.piece), stream.known[first]
        if known == 0:
            continue
        fitted = result[-1][2] if result else 0
        # A window is learnt anew after stride labels, at the start after a tenth more.
        if isinstance(learner, Refitted) and fitted and known - fitted < min(stride, known / 10):
            result[-1] = (result[-1][0], last, fitted)
        else:
            result.append((first, last, known))
    return result


def calibrated(stream, p):
    """The predictions with exponent and share of the frequencies that were best in the past."""
    result, first = p.copy(), 0
    options = [(a, e) for a in EXPONENTS for e in SHARES]

    def changed(rows, a, e):
        q = np.maximum(p[rows], 1e-12) ** a
        return (1 - e) * q / q.sum(1, keepdims=True) + e * stream.frequencies[rows]

    loss = np.zeros((stream.n + 1, len(options)))  # cumulated over the rows
    for i, (a, e) in enumerate(options):
        q = changed(slice(None), a, e)[np.arange(stream.n), stream.y]
        loss[1:, i] = -np.log(np.maximum(q, FLOOR)).cumsum()
    while first < stream.n:
        known, last = stream.known[first], min(stream.n, first + stream.piece)
        if known >= 50:
            a, e = options[int(np.argmin(loss[known] - loss[max(0, known - RECENT)]))]
            result[first:last] = changed(slice(first, last), a, e)
        first = last
    return result


def scores(p, y):
    """Error, mean log loss in nats and ECE of 15 bins of equal width."""
    top, right = p.max(1), p.argmax(1) == y
    bins = np.minimum((top * 15).astype(int), 14)
    ece = sum(abs((right[bins == b] - top[bins == b]).sum()) for b in range(15)) / len(y)
    return {"error": float(1 - right.mean()),
            "nll": float(-np.log(np.maximum(p[np.arange(len(y)), y], FLOOR)).mean()), "ece": float(ece)}


def read(path):
    """Features, labels as indices of the sorted class names, and the number of classes."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
        rows = list(csv.reader(file))[1:]
    names, y = np.unique([r[-1] for r in rows], return_inverse=True)
    return np.array([r[:-1] for r in rows], float), y, len(names)


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("file")
    flags.add_argument("--name", required=True, help="dataset in the output")
    flags.add_argument("--batch", type=int, default=100)
    flags.add_argument("--delay", type=int, default=0)
    flags.add_argument("--seed", type=int, default=1)
    flags.add_argument("--stride", type=int, default=100, help="labels after which a window is learnt anew")
    flags.add_argument("--methods", default="", help="names, separated by commas; default all")
    flags.add_argument("--variants", default="features,label", help="what the methods see")
    flags.add_argument("--out", default="-", help="file to which results are appended")
    options = flags.parse_args()
    warnings.filterwarnings("ignore")

    stream = Stream(*read(options.file), options.batch, options.delay)
    protocol = f"delay {options.delay}" if options.delay else f"batch {options.batch}"
    key = {"dataset": options.name, "protocol": protocol}
    done = set()
    if options.out != "-" and os.path.exists(options.out):
        with open(options.out) as file:
            done = {(r["dataset"], r["protocol"], r["method"], r["variant"], r["seed"], r["n"]) for r in map(json.loads, file)}

    def write(method, variant, p, seconds, version):
        line = json.dumps({**key, "method": method, "variant": variant, "seed": options.seed, **scores(p, stream.y),
                           "n": stream.n, "seconds": round(seconds, 2), "version": version})
        if options.out == "-":
            print(line, flush=True)
        else:
            with open(options.out, "a") as file:
                file.write(line + "\n")

    def judge(method, variant, predict, version):
        if (*key.values(), method, variant, options.seed, stream.n) in done:
            return
        start = sum(os.times()[:4])  # with processes that have ended
        p = predict()
        seconds = sum(os.times()[:4]) - start
        write(method, variant, p, seconds, version)
        write(method, (variant + "+temperature").removeprefix("features+"), calibrated(stream, p), seconds, version)
        print(f"{options.name}, {protocol}: {method}, {variant}, {seconds:.0f} s", file=sys.stderr, flush=True)

    all_methods = methods(options.seed)
    chosen = options.methods.split(",") if options.methods else ["frequencies", "last_label", *all_methods]
    for name in chosen:
        if name == "frequencies":
            judge(name, "features", lambda: stream.frequencies, "this script")
        elif name == "last_label":
            judge(name, "label", lambda: stream.chain, "this script")
        else:
            version = f"xgboost {xgboost.__version__}" if name.startswith("xgb") else f"scikit-learn {sklearn.__version__}"
            if "arf" in name:
                version = adaptive.version(name)
            for variant in options.variants.split(","):
                x = {"features": stream.x, "label": stream.with_order()}[variant]
                judge(name, variant, lambda: predictions(stream, x, all_methods[name](), options.stride), version)


if __name__ == "__main__":
    main()
