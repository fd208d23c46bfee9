"""The few shapes that our pictures are made of.

The colours are those of the page, light or dark. A picture that stands alone has its own, by the
setting of the reader's system. All are narrow enough to be read on a phone.
"""

from html import escape
from textwrap import wrap

WIDTH = 360
MONO = 6.3  # How wide a letter is, about, of the size that `text` has by default.

STYLE = """
.drawing { --ink: var(--color-foreground-primary, #1f2328); --soft: var(--color-foreground-muted,
  #59636e); --card: var(--color-background-secondary, #f6f8fa); --edge:
  var(--color-foreground-border, #8c959f); --accent: var(--color-brand-primary, #0a4bff);
  --page: var(--color-background-primary, #fff); }
@media (prefers-color-scheme: dark) { svg.drawing:root { --ink: #e6edf3; --soft: #9198a1;
  --card: #161b22; --edge: #656c76; --accent: #79a8ff; --page: #0d1117; } }
.drawing text { font: 11px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono",
  monospace; fill: var(--ink); }
.drawing .name { font-weight: bold; }
.drawing .soft { fill: var(--soft); }
.drawing .label { paint-order: stroke; stroke: var(--page); stroke-width: 5px; }
.drawing .box { fill: var(--card); stroke: var(--edge); }
.drawing .frame { fill: none; stroke: var(--edge); stroke-dasharray: 4 3; }
.drawing .line { fill: none; stroke: var(--ink); }
.drawing .life { stroke: var(--edge); stroke-width: 1.5; }
.drawing .dashed { stroke-dasharray: 4 3; }
.drawing .tip { fill: var(--ink); }
.drawing .mark { fill: var(--accent); }
"""


def drawing(height: float, title: str, parts: list[str]) -> str:
    """Return a picture of these parts."""
    return (
        f'<svg class="drawing" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" '
        f'role="img"><title>{escape(title)}</title><style>{STYLE}</style>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "middle") -> str:
    """Return a line of text, by its middle unless another anchor is named."""
    return (
        f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">'
        f"{escape(words, quote=False)}</text>"
    )


def box(x: float, y: float, width: float, height: float, kind: str = "box") -> str:
    """Return a box by its upper left corner."""
    return (
        f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4"/>'
    )


def line(x1: float, y1: float, x2: float, y2: float, kind: str = "line") -> str:
    """Return a straight line."""
    return f'<path class="{kind}" d="M{x1:g} {y1:g}L{x2:g} {y2:g}"/>'


def arrow(x1: float, y1: float, x2: float, y2: float, kind: str = "line") -> str:
    """Return a line with a tip at its end, across or down."""
    if y1 == y2:
        back = -6 if x2 > x1 else 6
        tip = f"M{x2:g} {y2:g}l{back} -3.5v7z"
    else:
        tip = f"M{x2:g} {y2:g}l-3.5 -6h7z"
    return f'{line(x1, y1, x2, y2, kind)}<path class="tip" d="{tip}"/>'


def loop(x: float, y: float) -> str:
    """Return an arrow that leaves the lower edge of a box and comes back to it."""
    return (
        f'<path class="line" d="M{x - 10:g} {y:g}v14h20v-8"/>'
        f'<path class="tip" d="M{x + 10:g} {y:g}l-3.5 6h7z"/>'
    )


def lines(words: str, width: float) -> list[str]:
    """Return the text in lines that fit into a width."""
    return wrap(words, max(int(width / MONO), 1), break_long_words=False, break_on_hyphens=False)
