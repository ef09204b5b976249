"""Tests of the tables of streams.py."""
import contextlib
import io
import os
import tempfile
import unittest

import streams


def figures(error, nll):
    return {"error": error, "nll": nll, "ece": "0.01", "cpu_seconds": "2", "state_bytes": "100", "rows": "20000"}


class Tables(unittest.TestCase):
    def table(self, programs, opponents, show=lambda *rest: streams.print_table("Title", *rest)):
        rows = [c for c in streams.cases() if str(c) == "batch100/rialto"]
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            show(rows, {(p, "batch100", "rialto"): f for p, f in programs.items()}, opponents)
        return out.getvalue()

    def rival(self, method, error, nll, n="20000", protocol="batch 100"):
        return {"dataset": "rialto", "protocol": protocol, "method": method, "variant": "label", "error": error, "nll": nll, "n": n}

    # The best other learner is one for each figure, of the same protocol and rows; the
    # winner is bold, whoever it is.
    def test_winners(self):
        programs = {"edge": figures("0.20", "0.50"), "alone": figures("0.35", "0.70")}
        opponents = [
            self.rival("forest", "0.10", "0.90"), self.rival("linear", "0.40", "0.80"),
            self.rival("other_protocol", "0.01", "0.01", protocol="batch 16"), self.rival("other_rows", "0.02", "0.02", n="100")]
        self.assertIn("| rialto | 0.3500 | 0.2000 | **0.1000** forest, label "
                      "| 0.7000 | **0.5000** | 0.8000 linear, label | 0.010 |", self.table(programs, opponents))
        self.assertIn("| Labels after each minibatch of 100 | 1 | 1 | 0 | 0.625, rialto 0.625 | 0.714, rialto 0.714 |",
                      self.table(programs, opponents, streams.print_summary))

    def test_missing_results(self):
        self.assertIn("| rialto | 0.3000 | – | – | 0.6000 | – | – | – |", self.table({"alone": figures("0.30", "0.60")}, []))
        self.assertIn("| Labels after each minibatch of 100 | 0 | 0 | 0 | – | – |", self.table({}, [], streams.print_summary))

    def test_more_points(self):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            streams.print_more_points({("edge", "batch16", "rialto"): figures("0.3", "0.6"), ("edge", "batch16-M100", "rialto"): figures("0.2", "0.5")})
        self.assertIn("| rialto | – | – | – | – | 0.3000 | 0.2000 | 0.6000 | 0.5000 |", out.getvalue())

    def test_error_of_mean(self):
        self.assertAlmostEqual(streams.error_of_mean([1, 2, 3]), (1 / 3) ** 0.5)
        self.assertEqual(streams.error_of_mean([1]), 0)

    # The page keeps its text around the tables, however often they are written.
    def test_page(self):
        text = "text\n" + streams.BEGIN + "old\n" + streams.END + "more\n"
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "streams.md")
            with open(path, "w") as file:
                file.write(text)
            for _ in range(2):
                streams.replace_tables(path, "new\n")
            with open(path) as file:
                self.assertEqual("text\n" + streams.BEGIN + "\nnew\n\n" + streams.END + "more\n", file.read())

    def test_cases(self):
        names = [str(c) for c in streams.cases()]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual({c.table for c in streams.cases()}, {*streams.TITLES, *streams.MORE_POINTS})


if __name__ == "__main__":
    unittest.main()
