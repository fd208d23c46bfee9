"""Line charts with logarithmic axes, as plain SVG."""

import math
from html import escape

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 150, 44, 46
COLOURS = ("#0b62a4", "#c2410c", "#15803d", "#7e22ce")
LABEL_HEIGHT = 16


def chart(title: str, lines: dict[str, dict[int, float]]) -> str:
    """Return the chart of seconds by bytes, one line for each name; no bytes are left out."""
    points = {
        name: [(int(size), taken) for size, taken in line.items() if int(size)]
        for name, line in lines.items()
    }
    sizes = sorted({size for line in points.values() for size, _ in line})
    times = [taken for line in points.values() for _, taken in line]
    low, high = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))
    first, last = math.log2(sizes[0]), math.log2(sizes[-1])

    def x(size: int) -> float:
        return LEFT + (math.log2(size) - first) / (last - first) * (WIDTH - LEFT - RIGHT)

    def y(taken: float) -> float:
        return HEIGHT - BOTTOM - (math.log10(taken) - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    drawn = [_text(LEFT, 24, title, "title")]
    for power in range(low, high + 1):
        height = y(10**power)
        drawn.append(_line(LEFT, height, WIDTH - RIGHT, height, "grid"))
        drawn.append(_text(LEFT - 8, height + 4, _seconds(power), "end"))
    for size in sizes:
        drawn.append(_line(x(size), HEIGHT - BOTTOM, x(size), HEIGHT - BOTTOM + 5, "grid"))
        drawn.append(_text(x(size), HEIGHT - BOTTOM + 20, _bytes(size), "middle"))
    taken_heights: list[float] = []
    by_last = sorted(points.items(), key=lambda item: -item[1][-1][1])
    colours = dict(zip(points, COLOURS, strict=False))
    for name, line in by_last:
        path = " ".join(f"{x(size):.1f},{y(taken):.1f}" for size, taken in line)
        colour = colours[name]
        drawn.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        drawn += [
            f'<circle cx="{x(size):.1f}" cy="{y(taken):.1f}" r="3" fill="{colour}"/>'
            for size, taken in line
        ]
        # From the top down, each label stands at least its own height below the last one.
        height = y(line[-1][1]) + 4
        if taken_heights:
            height = max(height, taken_heights[-1] + LABEL_HEIGHT)
        taken_heights.append(height)
        drawn.append(_text(WIDTH - RIGHT + 10, height, name, "start", colour))
    style = (
        "text{font:13px sans-serif;fill:#222}.title{font-weight:bold}"
        ".end{text-anchor:end}.middle{text-anchor:middle}.grid{stroke:#ccc}"
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
            f"<title>{escape(title)}</title>",
            f"<style>{style}</style>",
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
            *drawn,
            "</svg>",
            "",
        ]
    )


def _text(x: float, y: float, text: str, kind: str, colour: str = "") -> str:
    fill = f' style="fill:{colour}"' if colour else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}"{fill}>{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def _seconds(power: int) -> str:
    unit, scale = {0: ("s", 0), -1: ("ms", -3), -2: ("us", -6)}.get(power // 3, ("ns", -9))
    return f"{10 ** (power - scale)} {unit}"


def _bytes(size: int) -> str:
    return f"{size >> 20} MB" if size >= 2**20 else f"{size >> 10} KB"
