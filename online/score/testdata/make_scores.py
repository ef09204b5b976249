# Writes scores.json: predictions with their labels, and their scores by
# scikit-learn 1.2 and, where that has none, by numpy from the definitions in
# docs/reference/scores.md, taken literally. Run once:
#
#   python3 make_scores.py > scores.json
import json
import numpy as np
from sklearn import metrics

rng = np.random.default_rng(11)
C, N, W = 4, 700, 500
labels = []
for i in range(N):  # labels that persist, of unequal frequency; class 3 is rare
    if i and rng.random() < 0.3:
        labels.append(labels[-1])
    else:
        labels.append(int(rng.choice(C, p=[0.5, 0.3, 0.19, 0.01])))
labels = np.array(labels)
logits = rng.normal(size=(N, C)) + 1.5 * np.eye(C)[labels]
probs = np.exp(1.3 * logits)
probs /= probs.sum(1, keepdims=True)
probs = np.round(probs, 12)
probs[5] = np.eye(C)[(labels[5] + 1) % C]  # certain, and wrong


def losses(p_label):
    return -np.log(np.clip(p_label, 1e-6, 1))


def baselines():
    prior, last = [], []
    pairs = repeats = 0
    for i in range(N):
        n = np.bincount(labels[:i], minlength=C)
        pi = (n + 1) / (i + C)
        prior.append((pi[labels[i]], int(np.argmax(n)) != labels[i]))
        if i == 0:
            last.append(prior[-1])
            continue
        before = labels[i - 1]
        r = (repeats + 1) / (pairs + 2)
        p = pi * (1 - r) / (1 - pi[before])
        p[before] = r
        assert abs(p.sum() - 1) < 1e-12
        last.append((p[labels[i]], before != labels[i]))
        pairs += 1
        repeats += int(before == labels[i])
    return np.array(prior, float), np.array(last, float)


def ece(p, y):
    top, conf = p.argmax(1), p.max(1)
    edges = np.linspace(0, 1, 16)
    total = 0
    for lo, hi in zip(edges[:-1], edges[1:]):
        here = (conf >= lo) & ((conf < hi) | (hi == 1))
        if here.any():
            total += here.mean() * abs((top[here] == y[here]).mean() - conf[here].mean())
    return total


def figures(rows):
    p, y = probs[rows], labels[rows]
    top = p.argmax(1)
    prior, last = (b[rows] for b in baselines())
    every = list(range(C))
    zero = dict(labels=every, average=None, zero_division=0)
    return {
        "n": len(y),
        "error": 1 - metrics.accuracy_score(y, top),
        "nll": float(losses(p[np.arange(len(y)), y]).mean()),
        "brier": float(((p - np.eye(C)[y]) ** 2).sum(1).mean()),
        "ece": float(ece(p, y)),
        "macro_f1": metrics.f1_score(y, top, average="macro"),
        "balanced_accuracy": metrics.balanced_accuracy_score(y, top),
        "kappa": metrics.cohen_kappa_score(y, top),
        "precision": metrics.precision_score(y, top, **zero).tolist(),
        "recall": metrics.recall_score(y, top, **zero).tolist(),
        "prevalence": (np.bincount(y, minlength=C) / len(y)).tolist(),
        "confusion": metrics.confusion_matrix(y, top, labels=every).tolist(),
        "class_prior": {"error": prior[:, 1].mean(), "nll": float(losses(prior[:, 0]).mean())},
        "last_label": {"error": last[:, 1].mean(), "nll": float(losses(last[:, 0]).mean())},
    }


print(json.dumps({
    "probs": probs.tolist(), "labels": labels.tolist(),
    "all": figures(slice(0, N)), "window": figures(slice(N - W, N)),
}))
