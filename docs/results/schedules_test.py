"""Tests of the choices of schedules.py."""
import math
import unittest

import schedules
import streams


def row(schedule, dataset, batch, seed, nll):
    return {"schedule": schedule, "dataset": dataset, "batch": str(batch), "seed": str(seed), "nll": str(nll)}


class Choices(unittest.TestCase):
    # Schedule a is the best one on rialto alone, and by so much that it is the best of all;
    # rialto's own figure comes from b, which is better on the others.
    def test_leaves_the_stream_out(self):
        rows = []
        for dataset, a, b in [("rialto", 0.5, 1), ("weather", 1.1, 1), ("outdoor", 1.2, 1)]:
            for seed in (1, 2):
                rows += [row(name, dataset, batch, seed, nll) for batch in schedules.BATCHES for name, nll in (("a", a), ("b", b))]
        figures = schedules.changes(rows, ["a", "b"], "b")
        self.assertAlmostEqual(figures["rialto"]["a"][0], math.log(0.5))
        self.assertEqual(schedules.chosen_without(figures, ["a", "b"], "rialto"), "b")
        self.assertEqual(schedules.chosen_without(figures, ["a", "b"], "weather"), "a")
        self.assertEqual(min("ab", key=lambda n: streams.mean([streams.mean(f[n]) for f in figures.values()])), "a")

    # The figures are of seeds that every schedule has, in all sizes of minibatches.
    def test_pairs_seeds(self):
        rows = [row("a", "rialto", 16, 1, 1), row("a", "rialto", 100, 1, 4), row("a", "rialto", 16, 2, 9),
                row("b", "rialto", 16, 1, 1), row("b", "rialto", 100, 1, 1), row("b", "rialto", 16, 2, 9), row("b", "weather", 16, 1, 1)]
        figures = schedules.changes(rows, ["a", "b"], "b")
        self.assertEqual(list(figures), ["rialto"])
        self.assertEqual(len(figures["rialto"]["a"]), 1)
        self.assertAlmostEqual(figures["rialto"]["a"][0], math.log(2))


if __name__ == "__main__":
    unittest.main()
