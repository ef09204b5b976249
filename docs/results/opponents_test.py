"""Tests of opponents.py: what a learner may know, the scores, and a run on a small stream."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import adaptive
import numpy as np

import opponents


def stream(y, batch=1, delay=0):
    return opponents.Stream(np.zeros((len(y), 1)), np.array(y), max(y) + 1, batch, delay)


class Known(unittest.TestCase):
    def test_protocols(self):
        y = [0, 1, 0, 1, 1, 0, 1]
        for batch, delay, known, distance in [
                (1, 0, [0, 1, 2, 3, 4, 5, 6], [1, 1, 1, 1, 1, 1, 1]),
                (3, 0, [0, 0, 0, 3, 3, 3, 6], [1, 2, 3, 1, 2, 3, 1]),
                (1, 2, [0, 0, 0, 1, 2, 3, 4], [1, 2, 3, 3, 3, 3, 3])]:
            s = stream(y, batch, delay)
            self.assertEqual((known, distance), (s.known.tolist(), s.distance.tolist()))

    def test_chain_of_a_cycle(self):
        s = stream([0, 1, 2] * 40, batch=5)
        right = s.chain.argmax(1) == s.y
        self.assertTrue(right[60:].all(), "the chain predicts a cycle at every distance")
        np.testing.assert_allclose(s.chain.sum(1), 1)

    # Labels of row 150 on do not change what is predicted for row 199 and before,
    # where the labels of rows 100 to 199 are still unknown.
    def test_no_prediction_knows_later_labels(self):
        rng = np.random.RandomState(1)
        x, y = rng.normal(size=(300, 3)), rng.randint(0, 3, 300)
        other = y.copy()
        other[150:] = (other[150:] + 1) % 3
        for batch, delay, safe in [(100, 0, 200), (1, 0, 151), (1, 40, 191)]:
            results = []
            for labels in (y, other):
                s = opponents.Stream(x, labels, 3, batch, delay)
                learners = opponents.methods(1)
                results.append([f(s, learners[m]()) for m in ("et_1000", "softmax_sgd")
                                for f in (lambda s, l: opponents.predictions(s, s.with_order(), l, 50),
                                          lambda s, l: opponents.calibrated(s, opponents.predictions(s, s.x, l, 50)))])
            for a, b in zip(*results):
                np.testing.assert_array_equal(a[:safe], b[:safe])
                self.assertFalse(np.array_equal(a[safe:], b[safe:]))


class Scores(unittest.TestCase):
    def test_scores(self):
        p = np.array([[0.5, 0.5], [0.9, 0.1], [1, 0], [0.25, 0.75]])
        s = opponents.scores(p, np.array([0, 0, 1, 1]))
        self.assertAlmostEqual(s["error"], 0.25)
        self.assertAlmostEqual(s["nll"], -(np.log(0.5) + np.log(0.9) + np.log(1e-6) + np.log(0.75)) / 4)
        # Bins of 0.5, 0.75 and 0.9, 1 (not right): gaps of 0.5, 0.25, 0.1 and −1.
        self.assertAlmostEqual(s["ece"], (0.5 + 0.25 + 0.1 + 1) / 4)

    # Probabilities that are too confident by an exponent of 2 become right.
    def test_calibration(self):
        rng = np.random.RandomState(2)
        true = rng.uniform(0.05, 0.95, 5000)
        y = (rng.uniform(size=5000) < true).astype(int)
        p = np.stack([(1 - true) ** 2, true**2], 1)
        p /= p.sum(1, keepdims=True)
        s = opponents.Stream(np.zeros((5000, 1)), y, 2, 100, 0)
        before, after = opponents.scores(p, y), opponents.scores(opponents.calibrated(s, p), y)
        best = opponents.scores(np.stack([1 - true, true], 1), y)
        self.assertLess(after["nll"], best["nll"] + 0.2 * (before["nll"] - best["nll"]))


# A process whose votes for the classes are the labels that it has read, and the sum of
# the features for the last class.
VOTES = """
import struct, sys
features, classes = int(sys.argv[1]), int(sys.argv[2])
votes, read, write = [0.0] * classes, sys.stdin.buffer.read, sys.stdout.buffer.write
while n := struct.unpack(">i", read(4))[0]:
    for _ in range(abs(n)):
        row = struct.unpack(f">{features}d", read(8 * features))
        if n > 0:
            votes[int(struct.unpack(">d", read(8))[0])] += 1
        else:
            write(struct.pack(f">{classes}d", *votes[:-1], votes[-1] + sum(row)))
    sys.stdout.buffer.flush()
"""


class Adaptive(unittest.TestCase):
    def test_process(self):
        x, y = np.array([[1.0, 2], [3, 4], [0, 0], [5, -1]]), np.array([0, 0, 1, 2])
        learner = adaptive.Process(lambda features, classes: [sys.executable, "-c", VOTES, str(features), str(classes)])
        learner.update(x, y, 3, 0)
        np.testing.assert_allclose(learner.predict(x[2:], 3), [[1 / 3, 1 / 3, 1 / 3], [0, 0, 1]])
        learner.update(x, y, 3, 2)
        learner.update(x, y, 3, 3)
        np.testing.assert_allclose(learner.predict(x[3:], 3), [[2 / 7, 1 / 7, 4 / 7]])
        learner.close()
        self.assertEqual(0, learner.process.returncode)

    def test_a_process_that_fails(self):
        learner = adaptive.Process(lambda *_: [sys.executable, "-c", "import sys; sys.stdin.buffer.read(4 + 16); sys.exit(3)"])
        x = np.zeros((1, 2))
        learner.update(x, np.array([0]), 2, 0)
        with self.assertRaisesRegex(RuntimeError, "status 3"):
            learner.predict(x, 2)
        learner.process.stdin.close()
        learner.process.stdout.close()


class Run(unittest.TestCase):
    def test_program(self):
        rng = np.random.RandomState(3)
        y = rng.randint(0, 2, 300)
        x = rng.normal(size=(300, 2)) + 3 * y[:, None]
        with tempfile.TemporaryDirectory() as folder:
            rows, out = os.path.join(folder, "rows.csv"), os.path.join(folder, "out.jsonl")
            with open(rows, "w") as file:
                file.write("a,b,label\n" + "".join(f"{u},{v},{'pq'[k]}\n" for (u, v), k in zip(x, y)))
            command = [sys.executable, opponents.__file__, rows, "--name", "two", "--batch", "50", "--stride", "100", "--out", out]
            for _ in range(2):  # the second run computes nothing again
                subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
            with open(out) as file:
                lines = [json.loads(line) for line in file]
        count = 4 * len(opponents.methods(1)) + 4
        self.assertEqual(count, len(lines))
        for r in lines:
            self.assertEqual(("two", "batch 50", 300, 1), (r["dataset"], r["protocol"], r["n"], r["seed"]))
            if r["method"] not in ("frequencies", "last_label") and not r["variant"].startswith("label"):
                # Half of the first 50 rows is wrong; the classes overlap by 0.017.
                self.assertLess(r["error"], 0.16, r)
                self.assertLess(r["nll"], 0.5, r)


if __name__ == "__main__":
    unittest.main()
