#!/usr/bin/env python3
"""Measures edge and other learners on the same rows and prints the tables of streams.md.

streams.py edge PROGRAM [--lab FILE] [--only TEXT] [-- FLAGS]   edge-lab eval on every case → streams.csv
streams.py opponents [--only TEXT] [--seeds N]    opponents.py on every case → opponents.jsonl, opponents.csv
streams.py table [--only TEXT]                    prints the tables from streams.csv and opponents.csv
streams.py page                                   writes all tables into streams.md, between its two comments

PROGRAM names a column of the tables: "edge", or "alone" (the SEP posterior without
experts and order of labels, FLAGS --alone). Results are kept and not computed again
unless --again is given; opponents.jsonl goes to $RESULTS (default: the folder of this
script) and takes up where it stopped. --only takes cases whose name contains TEXT.
"""
import argparse
import contextlib
import csv
import io
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
from collections import defaultdict

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SHARED = os.path.join(os.path.dirname(ROOT), "shared")
DATA = os.path.join(SHARED, "data")
RESULTS = os.environ.get("RESULTS", HERE)

TWELVE = ("electricity gas_drift_partial insects_reoccurring_tail keystroke occupancy outdoor pendigits rialto "
          "room_occupancy wall_following weather wisdm_windows").split()
SMALL = "vowel glass wine new_thyroid".split()
FUNCTIONS = "rings checkerboard thresholds parity".split()
ORDERS = "unequal-noise sorted blocks rare wild".split()
SHUFFLED = {name: [] for name in SMALL + ["pendigits"]}
SHUFFLED["gas_drift_partial"] = ["--shuffle-within", "445,1244,1586,161,197,2300,294,470"]

EDGE_FIELDS = ["program", "table", "dataset", "protocol", "inducing", "seeds", "rows", "error", "error_se", "nll", "nll_se",
               "ece", "cpu_seconds", "state_bytes"]
OPPONENT_FIELDS = ["dataset", "protocol", "method", "variant", "seeds", "error", "nll", "ece", "n", "seconds", "version"]


class Case:
    """A data set under a protocol."""

    def __init__(self, table, dataset, protocol, first=20000, inducing=50, stride=100):
        self.table, self.dataset, self.protocol, self.first = table, dataset, protocol, first
        self.inducing, self.stride = inducing, stride
        kind, number = protocol.split()
        self.arrival = [] if kind == "labels" else [f"--{kind}", number]  # labels at once are the default of eval
        self.rivals = "batch 1" if kind == "labels" else protocol  # what the others are given
        self.generated = dataset in FUNCTIONS + ORDERS
        self.file = os.path.join(DATA, dataset + ".csv.gz")

    def __str__(self):
        return f"{self.table}/{self.dataset}"

    def order(self, seed):
        """Flags of the rows and their order; seeds are those of the shuffle, or of the model."""
        flags = ["--first", str(self.first)]
        if self.dataset in SHUFFLED:
            flags += ["--shuffle", str(seed), *SHUFFLED[self.dataset]]
        return flags

    def write(self, lab, seed, path):
        """Writes the rows in the order in which edge-lab eval learns them."""
        command = [lab, "generate", self.dataset, "--rows", str(self.first), "--seed", str(seed)] if self.generated else \
            [lab, "rows", self.file, *self.order(seed)]
        with open(path, "w") as file:
            subprocess.run(command, stdout=file, check=True)


def cases():
    """All cases, table by table."""
    result = [Case("batch100", d, "batch 100", stride=200) for d in TWELVE]
    result += [Case("functions", d, "batch 100", first=4000) for d in FUNCTIONS]
    result += [Case("orders", d, "batch 100", first=500 if d == "sorted" else 4000) for d in ORDERS]
    result += [Case("small", d, "batch 16") for d in SMALL]
    result += [Case("late", d, "delay 50", first=6000, stride=200) for d in ("rialto", "electricity")]
    result += [Case("batch16", d, "batch 16", stride=200) for d in TWELVE]
    result += [Case("at-once", d, "labels at-once", stride=200) for d in TWELVE]
    result += [Case("batch100-M100", d, "batch 100", inducing=100) for d in TWELVE]
    result += [Case("batch16-M100", d, "batch 16", inducing=100) for d in TWELVE]
    return result


def mean(values):
    return sum(values) / len(values)


def error_of_mean(values):
    m = mean(values)
    return math.sqrt(sum((v - m) ** 2 for v in values) / (len(values) - 1) / len(values)) if len(values) > 1 else 0.0


def read(path):
    if not os.path.exists(path):
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def write(path, fields, rows):
    with open(path + ".new", "w", newline="") as file:
        out = csv.DictWriter(file, fields, lineterminator="\n")
        out.writeheader()
        out.writerows(rows)
    os.replace(path + ".new", path)


def measure(lab, case, seeds, extra):
    """Figures of edge on a case: means over the seeds, and their standard errors."""
    flags = ["--json", *case.arrival, *extra]
    if case.inducing != 50:
        flags += ["--inducing", str(case.inducing)]
    reports, used = [], -resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    with tempfile.TemporaryDirectory() as folder:
        if case.generated:
            for seed in range(1, seeds + 1):
                path = os.path.join(folder, f"{seed}.csv")
                case.write(lab, seed, path)
                reports.append(evaluate(lab, path, flags))
        else:
            reports.append(evaluate(lab, case.file, [*case.order(1), "--seeds", str(seeds), *flags]))
    used += resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    runs = [run for r in reports for run in (r.get("runs") or [r])]
    row = {"table": case.table, "dataset": case.dataset, "protocol": case.protocol, "inducing": case.inducing,
           "seeds": len(runs), "rows": int(reports[0]["samples"]), "cpu_seconds": f"{used / len(runs):.2f}",
           "state_bytes": int(reports[0]["state_bytes"])}
    for figure in ("error", "nll", "ece"):
        values = [run[figure] for run in runs]
        row[figure] = f"{mean(values):.5f}"
        if figure != "ece":
            row[figure + "_se"] = f"{error_of_mean(values):.5f}"
    return row


def evaluate(lab, path, flags):
    out = subprocess.run([lab, "eval", path, *flags], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
    return json.loads(out.splitlines()[0])


def chosen(options):
    return [c for c in cases() if options.only in str(c)]


def run_edge(options):
    path = os.path.join(RESULTS, "streams.csv")
    for case in chosen(options):
        rows = read(path)
        same = [r for r in rows if (r["program"], r["table"], r["dataset"]) == (options.program, case.table, case.dataset)]
        if same and not options.again:
            continue
        row = {"program": options.program, **measure(options.lab, case, options.seeds, options.flags)}
        rows = [r for r in rows if r not in same] + [row]
        write(path, EDGE_FIELDS, sorted(rows, key=lambda r: (r["program"], r["table"], r["dataset"])))
        print(f"{case}: {row['error']} {row['nll']}, {row['cpu_seconds']} s", file=sys.stderr, flush=True)


def run_opponents(options):
    lines = os.path.join(RESULTS, "opponents.jsonl")
    for case in chosen(options):
        if case.inducing != 50 or case.rivals != case.protocol:
            continue
        for seed in range(1, options.seeds + 1):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "rows.csv")
                case.write(options.lab, seed, path)
                subprocess.run([options.python, os.path.join(HERE, "opponents.py"), path, "--name", case.dataset,
                                *case.arrival, "--seed", str(seed), "--stride", str(case.stride), "--methods", options.methods,
                                "--out", lines], check=True)
        summarise(lines)


def summarise(lines):
    """Writes the means over the seeds of opponents.jsonl into opponents.csv."""
    groups = defaultdict(dict)
    with open(lines) as file:
        for r in map(json.loads, file):
            groups[r["dataset"], r["protocol"], r["method"], r["variant"], r["n"], r["version"]][r["seed"]] = r
    rows = []
    for (dataset, protocol, method, variant, n, version), by_seed in sorted(groups.items()):
        runs = list(by_seed.values())
        rows.append({"dataset": dataset, "protocol": protocol, "method": method, "variant": variant, "seeds": len(runs),
                     **{f: f"{mean([r[f] for r in runs]):.5f}" for f in ("error", "nll", "ece")},
                     "n": n, "seconds": f"{mean([r['seconds'] for r in runs]):.1f}", "version": version})
    write(os.path.join(RESULTS, "opponents.csv"), OPPONENT_FIELDS, rows + peers())


def peers():
    """Learners of MOA, river, GPyTorch and others on the same streams: protocol S of ../shared/reference/peers.csv.

    They were given the features alone, and their shuffles of gas_drift_partial and pendigits are others.
    """
    known = {(c.dataset, c.protocol) for c in cases()}
    rows = []
    for r in read(os.path.join(SHARED, "reference", "peers.csv")):
        protocol = {"batch": "batch 100", "sample": "batch 1"}.get(r["mode"])
        if r["protocol"] == "S" and (r["dataset"], protocol) in known and r["error"] and r["nll"]:
            rows.append({"dataset": r["dataset"], "protocol": protocol, "method": r["peer"], "variant": "features", "seeds": 1,
                         **{f: r[f] for f in ("error", "nll", "ece", "n", "version")}})
    return rows


TITLES = {
    "batch100": "Labels after each minibatch of 100",
    "batch16": "Labels after each minibatch of 16",
    "at-once": "Label before the next row: the defaults",
    "late": "Labels 50 rows late",
    "functions": "Boundaries that a smooth kernel cannot follow, minibatches of 100",
    "orders": "Frequencies, order and wild values, minibatches of 100",
    "small": "Small sets, minibatches of 16",
}
MORE_POINTS = {"batch100-M100": "batch100", "batch16-M100": "batch16"}  # tables of M = 100, and of M = 50


def number(row, figure):
    return float(row[figure]) if row else None


def cell(value, best, digits=4):
    """A figure, bold if it is the best of its column group."""
    if value is None:
        return "–"
    text = f"{value:.{digits}f}"
    return f"**{text}**" if best is not None and value <= best else text


def line(edge, alone, opponents):
    """Cells of one data set: alone, edge and the best opponent, for error and nll."""
    cells = []
    for figure in ("error", "nll"):
        rival = min(opponents, key=lambda r: float(r[figure]), default=None)
        best = min(number(edge, figure), number(rival, figure)) if edge and rival else None
        cells += [cell(number(alone, figure), None), cell(number(edge, figure), best), cell(number(rival, figure), best)]
        cells[-1] += f" {rival['method']}, {rival['variant']}" if rival else ""
    return cells


def rivals(case, edge, opponents):
    """The other learners that were given the same rows and labels as edge."""
    return [r for r in opponents if edge and (r["dataset"], r["protocol"]) == (case.dataset, case.rivals)
            and int(r["n"]) == int(edge["rows"])]


def print_table(title, rows, programs, opponents):
    """One table; rows are the cases of it."""
    print(f"### {title}\n")
    print("| stream | error, alone | edge | best other | nll, alone | edge | best other | ECE, edge |")
    print("|---" * 8 + "|")
    for case in rows:
        edge, alone = (programs.get((p, case.table, case.dataset)) for p in ("edge", "alone"))
        print("| " + " | ".join([case.dataset, *line(edge, alone, rivals(case, edge, opponents)), cell(number(edge, "ece"), None, 3)]) + " |")
    print()


def print_summary(chosen, programs, opponents):
    """For each table: on how many streams edge is first, and its nll to that of the others and of alone."""
    print("| protocol or streams | compared | edge first in nll | first in error | nll to the best other, largest | nll to alone, largest |")
    print("|---" * 6 + "|")
    for table, title in TITLES.items():
        first, others, parts = {"error": 0, "nll": 0}, [], []
        for case in chosen:
            if case.table != table:
                continue
            edge, alone = (programs.get((p, table, case.dataset)) for p in ("edge", "alone"))
            found = rivals(case, edge, opponents)
            for figure in first:
                first[figure] += bool(found) and float(edge[figure]) <= min(float(r[figure]) for r in found)
            if found:
                others.append((float(edge["nll"]) / min(float(r["nll"]) for r in found), case.dataset))
            if edge and alone:
                parts.append((float(edge["nll"]) / float(alone["nll"]), case.dataset))
        print("| " + " | ".join([title, str(len(others)), str(first["nll"]), str(first["error"]), geometric(others), geometric(parts)]) + " |")
    print()


def geometric(quotients):
    """The geometric mean of quotients, and the largest of them with the name of its stream."""
    if not quotients:
        return "–"
    largest, name = max(quotients)
    return f"{math.exp(mean([math.log(q) for q, _ in quotients])):.3f}, {name} {largest:.3f}"


def print_more_points(programs):
    """Error and nll with 100 inducing points beside those with 50."""
    print("### Twice as many inducing points\n")
    for more, fewer in MORE_POINTS.items():
        runs = [(programs.get(("edge", more, name)), programs.get(("edge", fewer, name)), name) for name in TWELVE]
        print(f"{TITLES[fewer]}: nll with M = 100 to M = 50, mean and largest: "
              + geometric([(float(a["nll"]) / float(b["nll"]), name) for a, b, name in runs if a and b]) + ".\n")
    print("| stream | " + " | ".join(f"{TITLES[fewer].split()[-1]}: error, M = 50 | M = 100 | nll, M = 50 | M = 100" for fewer in MORE_POINTS.values()) + " |")
    print("|---" * 9 + "|")
    for name in TWELVE:
        cells = [name]
        for more, fewer in MORE_POINTS.items():
            runs = [programs.get(("edge", table, name)) for table in (fewer, more)]
            cells += [cell(number(run, figure), None) for figure in ("error", "nll") for run in runs]
        print("| " + " | ".join(cells) + " |")
    print()


def run_table(options):
    programs = {(r["program"], r["table"], r["dataset"]): r for r in read(os.path.join(RESULTS, "streams.csv"))}
    opponents = read(os.path.join(RESULTS, "opponents.csv"))
    print_summary(chosen(options), programs, opponents)
    for table, title in TITLES.items():
        rows = [c for c in chosen(options) if c.table == table]
        if rows:
            print_table(title, rows, programs, opponents)
    print_more_points(programs)
    versions = sorted({r["version"] for r in opponents} - {"this script", "own baseline", ""})
    if versions:
        print("Other learners: " + ", ".join(versions) + ".")


BEGIN, END = "<!-- tables of streams.py -->\n", "<!-- end of the tables -->\n"


def run_page(options):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        run_table(options)
    replace_tables(os.path.join(HERE, "streams.md"), text.getvalue())


def replace_tables(path, tables):
    with open(path) as file:
        head, rest = file.read().split(BEGIN)
    with open(path, "w") as file:
        file.write(head + BEGIN + "\n" + tables + "\n" + END + rest.split(END)[1])


def main():
    arguments, flags = sys.argv[1:], []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, flags = arguments[:at], arguments[at + 1:]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["edge", "opponents", "table", "page"])
    parser.add_argument("program", nargs="?", default="edge")
    parser.add_argument("--lab", default=os.environ.get("EDGE"), help="the program edge-lab; default: build it")
    parser.add_argument("--only", default="", help="part of table/dataset, such as batch16/ or /rialto")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--methods", default="", help="of opponents.py; default all")
    parser.add_argument("--python", default="/usr/bin/python3", help="with scikit-learn")
    parser.add_argument("--again", action="store_true", help="measure cases that streams.csv has")
    options = parser.parse_args(arguments)
    options.flags = flags
    if options.command in ("table", "page"):
        {"table": run_table, "page": run_page}[options.command](options)
        return
    with tempfile.TemporaryDirectory() as folder:
        if not options.lab:
            options.lab = os.path.join(folder, "edge-lab")
            subprocess.run(["go", "build", "-o", options.lab, "./cmd/edge-lab"], cwd=ROOT, check=True)
        {"edge": run_edge, "opponents": run_opponents}[options.command](options)


if __name__ == "__main__":
    main()
