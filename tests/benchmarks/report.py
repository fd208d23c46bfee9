"""The tables and plots, for the terminal and for `docs/performance.md`."""

import platform
import re
from pathlib import Path
from typing import Any

import plots
from goals import GOALS, measured
from measure import AGAIN
from peers import PEERS
from rules import RULES

DOCS = Path(__file__).parents[2] / "docs"
NAMES = [peer.name for peer in PEERS]

Run = dict[str, Any]


def table(head: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table; all columns but the first are figures."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def seconds(value: float) -> str:
    for unit, size in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def size(value: int) -> str:
    for unit, power in (("MB", 20), ("KB", 10)):
        if value >= 2**power:
            return f"{value >> power} {unit}"
    return str(value)


def goals(runs: list[Run]) -> tuple[str, bool]:
    """Return the goals beside what was measured, and whether all of them are met."""
    rows = []
    for goal in GOALS:
        ratio = measured(goal, runs)
        missed = "missed, and left" if goal.is_left else "**missed**"
        verdict = "met" if ratio <= goal.at_most else missed
        rows.append([goal.title, f"{goal.at_most:.2f}", f"{ratio:.3f}", verdict])
    met = all(row[-1] != "**missed**" for row in rows)
    return table(["goal", "at most", "measured", ""], rows), met


def operations(run: Run) -> str:
    """Return the median time of every operation with every peer."""
    rows = []
    for title, found in run["operations"].items():
        if "agui_runs" in found["seconds"]:
            cells = [found["seconds"].get(name) for name in NAMES]
            rows.append([title, *["cannot" if cell is None else seconds(cell) for cell in cells]])
    return table(["", *NAMES], rows)


def noise(runs: list[Run]) -> str:
    """Return how far the same code differed from itself, over all operations and processes."""
    ratios = sorted(
        abs(found["ratio"][AGAIN] - 1)
        for run in runs
        for kind in ("operations", "answers", "digests")
        for found in run.get(kind, {}).values()
    )
    half, most, worst = (ratios[int(share * (len(ratios) - 1))] for share in (0.5, 0.9, 1))
    return (
        f"The same code timed against itself, in {len(ratios)} comparisons, differed by "
        f"{half:.1%} in the middle case, by no more than {most:.1%} in nine of ten, and by "
        f"{worst:.1%} at worst."
    )


def whole_run(run: Run) -> str:
    rows = [
        [title, *[seconds(found["seconds"][name]) for name in NAMES]]
        for title, found in run["whole_run"].items()
    ]
    return table(["", *NAMES], rows)


def memory(run: Run) -> str:
    rows = [
        [title, *[f"{run['memory'][kind][name]:.0f}" for name in NAMES]]
        for title, kind in (("a W1 record, bytes", "record"), ("one more advance", "advance"))
    ]
    return table(["", *NAMES], rows)


def importing(run: Run) -> str:
    found = run["importing"]
    rows = [
        [f"`{name}`" if name != "its standard-library modules" else name, seconds(taken)]
        for name, taken in found["seconds"].items()
        if name != AGAIN
    ]
    return table(["import of", "time"], rows)


def sharing(run: Run) -> str:
    """Return what a snapshot costs that shares most of the last one."""
    found = run["sharing"]
    rows = [
        [title, *[seconds(found[part]["seconds"][name]) for name in ("shared", "whole")]]
        for title, part in (("one key changed", "one key"), ("one message more", "one message"))
    ]
    return table(["256 KB", "shared", "frozen whole"], rows)


def wire(run: Run) -> str:
    """Return the times of what only the wire has: answers and digests."""
    rows = [
        [f"answer, {count} entries", seconds(found["seconds"]["agui_runs"]), "has none"]
        for count, found in run["answers"].items()
    ]
    rows += [
        [
            f"digest, {title}",
            seconds(found["seconds"]["agui_runs"]),
            seconds(found["seconds"]["rfc8785"]),
        ]
        for title, found in run["digests"].items()
    ]
    return table(["", "agui_runs", "rfc8785"], rows)


def growth(run: Run) -> str:
    """Return how our operations grow, and the exponent of it."""
    found = run["growth"]
    sizes = list(found["digest"]["seconds"]["agui_runs"])
    by_size = {"advance": run["flat"]["snapshot"]["seconds"]["agui_runs"]}
    for title in ("from_storage", "to_storage", "digest"):
        by_size[title] = found[title]["seconds"]["agui_runs"]
    rows = [
        [f"{title}, by snapshot", *[seconds(taken[each]) for each in sizes]]
        for title, taken in by_size.items()
    ]
    first = table(["", *[size(int(each)) for each in sizes]], rows)
    counts = list(found["answer"]["seconds"]["agui_runs"])
    by_count = {
        "advance": run["flat"]["interrupts"]["seconds"]["agui_runs"],
        "answer": found["answer"]["seconds"]["agui_runs"],
    }
    rows = [
        [f"{title}, by interrupts", *[seconds(taken[each]) for each in counts]]
        for title, taken in by_count.items()
    ]
    return first + "\n\n" + table(["", *[f"{int(each):,}" for each in counts]], rows)


def peers() -> str:
    """Return who does what of what agui_runs does."""
    rows = [
        [title, *["yes" if rule(peer) else "**no**" for peer in PEERS]]
        for title, rule in RULES.items()
    ]
    return table(["", *NAMES], rows)


def machine() -> str:
    return (
        f"Measured on {platform.python_implementation()} {platform.python_version()}, "
        f"{platform.system()} on {platform.machine()}."
    )


def sections(runs: list[Run]) -> dict[str, str]:
    """Return every measured part of the document, by the name of its marker."""
    first = runs[0]
    return {
        "machine": machine(),
        "goals": goals(runs)[0],
        "operations": operations(first),
        "noise": noise(runs),
        "whole_run": whole_run(first),
        "sharing": sharing(first),
        "memory": memory(first),
        "importing": importing(first),
        "wire": wire(first),
        "growth": growth(first),
        "peers": peers(),
    }


def write(runs: list[Run]) -> None:
    """Put the tables between their markers in the document, and draw the plots."""
    document = DOCS / "performance.md"
    text = document.read_text("utf-8")
    for name, body in sections(runs).items():
        between = rf"(<!-- measured: {name} -->\n).*?(<!-- end -->)"
        text, count = re.subn(
            between, lambda found, body=body: f"{found[1]}\n{body}\n\n{found[2]}", text, flags=re.S
        )
        assert count == 1, f"docs/performance.md must have one marker for {name}"
    document.write_text(text, "utf-8")
    flat = runs[0]["flat"]["snapshot"]["seconds"]
    loading = runs[0]["growth"]["from_storage"]["seconds"]
    for name, title, lines in (
        ("advance", "advance, by size of the snapshot", flat),
        ("loading", "from_storage, by size of the snapshot", loading),
    ):
        (DOCS / f"performance-{name}.svg").write_text(plots.chart(title, lines), "utf-8")
