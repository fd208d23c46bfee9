"""A sequence diagram, drawn from its text in Mermaid's language, or as much of it as we use."""

import re

from svg import WIDTH, arrow, box, drawing, line, lines, text

PARTICIPANT = re.compile(r"participant (\w+)")
MESSAGE = re.compile(r"(\w+)(--?)>>(\w+): (.+)")
NOTE = re.compile(r"Note over (\w+): (.+)")
LOOP = re.compile(r"loop (.+)")
LINE = 14


def draw(source: str) -> str:
    """Return the diagram: one lane for each participant, and time goes down."""
    first, *rest = [each.strip() for each in source.strip().splitlines()]
    if first != "sequenceDiagram":
        raise ValueError(f"not a sequence diagram: {first}")
    names = [found[1] for found in map(PARTICIPANT.fullmatch, rest) if found]
    lane = {name: WIDTH * (index + 0.5) / len(names) for index, name in enumerate(names)}
    parts: list[str] = []
    loops: list[float] = []
    y = 34.0
    for each in rest[len(names) :]:
        if found := MESSAGE.fullmatch(each):
            sender, dashes, receiver, words = found.groups()
            x1, x2 = lane[sender], lane[receiver]
            said = lines(words, WIDTH / len(names) + 6)
            for row in said:
                y += LINE
                parts.append(text((x1 + x2) / 2, y, row, "label"))
            y += 7
            parts.append(arrow(x1, y, x2, y, "line dashed" if dashes == "--" else "line"))
            y += 6
        elif found := NOTE.fullmatch(each):
            x, said = lane[found[1]], lines(found[2], WIDTH / len(names))
            width = max(map(len, said)) * 6.7 + 12
            x = min(max(x, width / 2 + 1), WIDTH - width / 2 - 1)
            parts.append(box(x - width / 2, y + 6, width, len(said) * LINE + 8))
            parts += [text(x, y + 6 + LINE * (n + 1), row) for n, row in enumerate(said)]
            y += len(said) * LINE + 18
        elif found := LOOP.fullmatch(each):
            loops.append(y + 4)
            parts.append(text(6, y + 16, found[1], "soft label", "start"))
            y += 18
        elif each == "end":
            y += 6
            top = loops.pop()
            parts.append(box(1, top, WIDTH - 2, y - top, "frame"))
            y += 4
        else:
            raise ValueError(f"not a step of a sequence diagram that can be drawn: {each}")
    y += 10
    back = [line(x, 28, x, y, "life") for x in lane.values()]
    heads = [box(x - 40, 2, 80, 26) for x in lane.values()]
    heads += [text(x, 19, name, "name") for name, x in lane.items()]
    return drawing(
        y + 2, "What is sent and what is stored, in the order of time", back + parts + heads
    )
