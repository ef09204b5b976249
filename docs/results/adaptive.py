"""Adaptive random forests of River and MOA as learners of opponents.py.

They learn one row at a time in its units, as their authors publish them: River's with its
default of ten trees, MOA's with ten and with its default of a hundred. River has to be
importable; the variable MOA is a class path with MOA's classes (moa.jar), which Forest.java
uses. Its processor time is that of the whole process, with start and collection of garbage.
"""
import atexit
import functools
import os
import shutil
import struct
import subprocess
import tempfile

import numpy as np

try:
    from river import __version__ as river_version
    from river import forest
except ImportError:
    forest = None

MOA = os.environ.get("MOA")


class River:
    def __init__(self, seed):
        self.model, self.seen = forest.ARFClassifier(seed=seed), 0

    def update(self, x, y, classes, known):
        for row, label in zip(x[self.seen:known].tolist(), y[self.seen:known].tolist()):
            self.model.learn_one(dict(enumerate(row)), label)
        self.seen = known

    def predict(self, x, classes):
        p = np.zeros((len(x), classes))
        for row, to in zip(x.tolist(), p):
            for label, share in self.model.predict_proba_one(dict(enumerate(row))).items():
                to[label] = share
        return normal(p)


class Process:
    """A learner in a process of its own, which starts when the size of a row is known.

    A request is a count and that many rows of float64, both in the order of the network.
    Rows to learn have their label at the end. A negative count announces rows to predict;
    the answer is a vote for each of their classes. A count of zero is the end.
    """

    def __init__(self, command):
        self.command, self.process, self.seen = command, None, 0

    def send(self, count, rows):
        self.process.stdin.write(struct.pack(">i", count) + rows.astype(">f8").tobytes())
        self.process.stdin.flush()

    def update(self, x, y, classes, known):
        if self.process is None:
            self.process = subprocess.Popen(self.command(x.shape[1], classes), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if known > self.seen:
            self.send(known - self.seen, np.column_stack([x, y])[self.seen:known])
        self.seen = known

    def predict(self, x, classes):
        self.send(-len(x), x)
        size = 8 * len(x) * classes
        answer = self.process.stdout.read(size)
        if len(answer) < size:
            raise RuntimeError(f"the process ended with status {self.process.wait()}")
        return normal(np.frombuffer(answer, ">f8").reshape(len(x), classes))

    def close(self):
        """Ends the process: its processor time now counts as that of a child."""
        self.send(0, np.empty(0))
        self.process.communicate()


def normal(votes):
    """Votes as probabilities; all the same where there are none. MOA's can be NaN."""
    votes = np.nan_to_num(votes, nan=0, posinf=0)
    total = votes.sum(1, keepdims=True)
    return np.where(total > 0, votes / np.where(total > 0, total, 1), 1 / votes.shape[1])


@functools.cache
def compiled():
    """A folder with the classes of Forest.java, until the end of the program."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "Forest.java")
    subprocess.run(["javac", "-cp", MOA, "-d", folder, source], check=True)
    return folder


def moa(folder, trees, seed):
    return Process(lambda features, classes: ["java", "-XX:+UseSerialGC", "-cp", MOA + os.pathsep + folder, "Forest",
                                              str(features), str(classes), str(trees), str(seed)])


def methods(seed):
    """Those that are installed, by name."""
    result = {}
    if forest is not None:
        result["river_arf"] = lambda: River(seed)
    if MOA and shutil.which("javac"):
        folder = compiled()  # before anybody measures the time
        result["moa_arf"] = lambda: moa(folder, 10, seed)
        result["moa_arf_100"] = lambda: moa(folder, 100, seed)
    return result


def version(name):
    return f"River {river_version}" if name.startswith("river") else "MOA"
