"""A state diagram, drawn from its text in Mermaid's language, which comes from tests/model.py."""

import re
from collections import defaultdict
from itertools import pairwise

from svg import WIDTH, arrow, box, drawing, loop, text

ARROW = re.compile(r"(\[\*\]|\w+) --> (\[\*\]|\w+)(?:: (\w+))?")
BOX, HEIGHT = 82, 30


def draw(source: str) -> str:
    """Return the diagram of a lifecycle: live states above, and below them those that end it.

    Every live state must lead to the same endings by the same calls, so that one arrow for all
    of them tells the truth.
    """
    first, *rest = [each.strip() for each in source.strip().splitlines()]
    found = [ARROW.fullmatch(each) for each in rest]
    if first != "stateDiagram-v2" or None in found:
        raise ValueError(f"not a state diagram that can be drawn: {source}")
    arrows = [each.groups() for each in found if each]
    ended = [before for before, after, _ in arrows if after == "[*]"]
    live = [state for state in dict.fromkeys(a for a, _, _ in arrows) if state not in ended]
    live.remove("[*]")
    calls = defaultdict(list)
    for before, after, method in arrows:
        calls[before, after].append(method)
    ways = [[calls.get((state, ending)) for ending in ended] for state in live]
    steps = {pair for pair in calls if pair[0] in live and pair[1] in live and pair[0] != pair[1]}
    backward = [pair for pair in calls if pair[0] in ended and pair[1] not in (pair[0], "[*]")]
    in_turn = set(pairwise(live))
    lost = {after for _, after, _ in arrows} - {*live, *ended, "[*]"}
    if any(way != ways[0] for way in ways) or lost or steps != in_turn or backward:
        raise ValueError(f"the picture would not tell all of: {source}")

    parts = [box(18, 14, WIDTH - 24, 104, "frame"), text(26, 28, "live", "soft", "start")]
    gap = (WIDTH - 60) / len(live)
    middle = {state: 34 + gap * (index + 0.5) for index, state in enumerate(live)}
    top = 48
    parts += ['<circle class="tip" cx="6" cy="63" r="5"/>', arrow(6, 63, middle[live[0]] - 41, 63)]
    for state in live:
        parts += _state(middle[state], top, state, calls.get((state, state), []))
    for before, after in in_turn:
        x1, x2 = middle[before] + BOX / 2, middle[after] - BOX / 2
        parts += [arrow(x1, 63, x2, 63), text((x1 + x2) / 2, 57, ", ".join(calls[before, after]))]

    top, gap = 182, WIDTH / len(ended)
    tallest = max(len(calls.get((ending, ending), [])) for ending in ended)
    for index, ending in enumerate(ended):
        x = gap * (index + 0.5)
        parts += [arrow(x, 118, x, top - 3), text(x, 150, ", ".join(ways[0][index]), "label")]
        parts += [box(x - BOX / 2 - 3, top - 3, BOX + 6, HEIGHT + 6, "frame")]
        parts += _state(x, top, ending, calls.get((ending, ending), []))
    height = top + HEIGHT + 32 + 14 * tallest
    return drawing(
        height, "The states of a run, and the calls that lead from one to another", parts
    )


def _state(x: float, y: float, name: str, own: list[str]) -> list[str]:
    parts = [box(x - BOX / 2, y, BOX, HEIGHT), text(x, y + 19, name, "name")]
    if own:
        parts.append(loop(x, y + HEIGHT))
        parts += [text(x, y + HEIGHT + 28 + 14 * row, call) for row, call in enumerate(own)]
    return parts
