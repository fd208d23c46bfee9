"""Measure agui_runs against its peers, and judge the goals.

Run it from a checkout with the extra `benchmarks` installed:

    python tests/benchmarks/run.py            measure, and print goals and ratios
    python tests/benchmarks/run.py --write    the same, and write docs/performance.md
    python tests/benchmarks/run.py --quick    only see that every benchmark runs

It exits with 1 where a goal is missed. Close other programs first; what a busy machine
still does to the figures is printed as the noise.
"""

import argparse
import json
import subprocess
import sys
from typing import Any

import report
from operations import FAST, SLOW, Scale

PROCESSES = 3


def main() -> int:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="run all, measure nothing well")
    parser.add_argument("--write", action="store_true", help="write docs/performance.md too")
    parser.add_argument("--only", action="append", choices=[*FAST, *SLOW], help=argparse.SUPPRESS)
    options = parser.parse_args()
    scale = Scale(quick=options.quick)
    if options.only:
        kinds = {**FAST, **SLOW}
        print(json.dumps({name: kinds[name](scale) for name in options.only}))
        return 0
    runs = [measured([*FAST, *SLOW], options.quick)]
    if not options.quick:
        runs += [measured([*FAST], options.quick) for _ in range(PROCESSES - 1)]
    # A smoke run goes through the report too, but its figures mean nothing.
    for name, body in report.sections(runs).items():
        print(f"\n{name}\n\n{body}")
    if options.quick:
        return 0
    if options.write:
        report.write(runs)
    table, met = report.goals(runs)
    print(f"\n{table}\n\n{'All goals are met.' if met else 'Some goals are missed.'}")
    return 0 if met else 1


def measured(kinds: list[str], quick: bool) -> dict[str, Any]:
    """Measure in a fresh process, so that no run inherits another's memory or caches."""
    command = [sys.executable, __file__, *(["--quick"] if quick else [])]
    for kind in kinds:
        command += ["--only", kind]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    sys.exit(main())
