#!/usr/bin/env python3
"""Compares schedules of a learning step, and chooses one by leaving each stream out once.

schedules.py measure NAME=PROGRAM...   edge-lab eval of each program → schedules.csv
schedules.py table [--now NAME]        prints the figures, and the choices, in percent of NAME

A PROGRAM is an edge-lab that was built with the constants of its schedule. Figures that
schedules.csv has are not measured again. Streams are those of streams.py, their first
6,000 rows (outdoor: 3,000), in minibatches of 16 and of 100; the seeds of all programs are the same.

For each stream the table has the log loss of each schedule, both sizes of minibatches
together (geometric mean), in percent of the schedule NAME, and that of the schedule
whose geometric mean over the other streams is least. The last line is the mean over the
streams: that of the choices is not optimistic, those of the schedules are.
"""
import argparse
import json
import math
import os
import resource
import subprocess
import sys

import streams

FIELDS = ["schedule", "dataset", "batch", "seed", "rows", "error", "nll", "cpu_seconds"]
BATCHES = (16, 100)
FIRST = {"outdoor": 3000}
PATH = os.path.join(streams.RESULTS, "schedules.csv")


def key(row):
    return row["schedule"], row["dataset"], int(row["batch"]), int(row["seed"])


def evaluate(program, dataset, batch, seeds):
    """Figures of one program on one stream, a row for each seed."""
    case = streams.Case("schedules", dataset, f"batch {batch}", first=FIRST.get(dataset, 6000))
    used = -resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    report = streams.evaluate(program, case.file, ["--json", *case.order(1), "--seeds", str(seeds), *case.arrival])
    used += resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    runs = report.get("runs") or [report]
    return [{"dataset": dataset, "batch": batch, "seed": seed, "rows": int(report["samples"]), "error": f"{run['error']:.5f}",
             "nll": f"{run['nll']:.5f}", "cpu_seconds": f"{used / len(runs):.2f}"} for seed, run in enumerate(runs, 1)]


def measure(options):
    for dataset in options.only.split(",") if options.only else streams.TWELVE:
        for batch in BATCHES:
            for name, program in (p.split("=", 1) for p in options.programs):
                rows = streams.read(PATH)
                if (name, dataset, batch, options.seeds) in map(key, rows):
                    continue
                fresh = [{"schedule": name, **row} for row in evaluate(program, dataset, batch, options.seeds)]
                known = set(map(key, fresh))
                streams.write(PATH, FIELDS, sorted([r for r in rows if key(r) not in known] + fresh, key=key))
                print(name, dataset, batch, [row["nll"] for row in fresh], file=sys.stderr, flush=True)


def changes(rows, names, now, batches=BATCHES):
    """Of each stream and schedule, the logarithms of its log loss to that of now, one for each seed."""
    nll = {key(r): math.log(max(float(r["nll"]), 1e-9)) for r in rows}
    result = {}
    for dataset in streams.TWELVE:
        seeds = [s for s in range(1, 100) if all((n, dataset, b, s) in nll for n in names for b in batches)]
        if seeds:
            result[dataset] = {n: [streams.mean([nll[n, dataset, b, s] - nll[now, dataset, b, s] for b in batches]) for s in seeds]
                               for n in names}
    return result


def chosen_without(figures, names, left_out):
    """The schedule with the least mean over the streams but one."""
    others = [d for d in figures if d != left_out]
    return min(names, key=lambda n: streams.mean([streams.mean(figures[d][n]) for d in others]))


def percent(values):
    text = f"{100 * math.expm1(streams.mean(values)):+.2f}"
    return text + (f" ± {100 * streams.error_of_mean(values):.2f}" if len(values) > 1 else "")


def table(options):
    rows = streams.read(PATH)
    names = options.programs or sorted({r["schedule"] for r in rows})
    for title, batches in [(f"minibatches of {b}", (b,)) for b in BATCHES] + [("both", BATCHES)]:
        figures = changes(rows, names, options.now, batches)
        print(f"\n| {title} | " + " | ".join(names) + " | chosen on the others | its change |\n" + "|---" * (len(names) + 3) + "|")
        choices = []
        for dataset, of in figures.items():
            best = chosen_without(figures, names, dataset)
            choices.append(streams.mean(of[best]))
            print(f"| {dataset} | " + " | ".join(percent(of[n]) for n in names) + f" | {best} | {percent(of[best])} |")
        means = [percent([streams.mean([streams.mean(of[n]) for of in figures.values()])]) for n in names]
        print("| *mean* | " + " | ".join(means) + f" | | {percent([streams.mean(choices)])} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["measure", "table"])
    parser.add_argument("programs", nargs="*", help="NAME=PROGRAM; of table: names, default all")
    parser.add_argument("--now", default="former", help="schedule to which the table compares")
    parser.add_argument("--only", default="", help="names of streams")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    {"measure": measure, "table": table}[options.command](options)


if __name__ == "__main__":
    main()
