"""Pictures become part of their page, so that they have its colours and need no script."""

from pathlib import Path

import sequence
import states
from docutils import nodes

DRAWN = {"stateDiagram": states.draw, "sequenceDiagram": sequence.draw}


def draw(app, tree) -> None:
    """Put a drawing in the place of each Mermaid block and of each picture that svg.py made."""
    for block in list(tree.findall(nodes.literal_block)):
        if block.get("language") == "mermaid":
            source = block.astext()
            [pick] = [pick for kind, pick in DRAWN.items() if source.startswith(kind)]
            _replace(block, pick(source))
    for image in list(tree.findall(nodes.image)):
        path = Path(app.srcdir, image["uri"])
        if path.suffix == ".svg" and 'class="drawing"' in (made := path.read_text("utf-8")):
            _replace(image, made)


def _replace(node, made: str) -> None:
    node.replace_self(nodes.raw("", f'<div class="picture">{made}</div>', format="html"))
