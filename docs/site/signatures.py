"""Signatures say `JSONValue` and `RunStatus`, as the source does, and not what these stand for."""

from sphinx.util.typing import stringify_annotation

import agui_runs

NAMES = ("JSONValue", "RunStatus", "TerminalStatus", "InterruptStatus", "Decision")
ALIASES = {stringify_annotation(getattr(agui_runs, name), "smart"): name for name in NAMES}


def shorten(app, what, name, value, options, signature, returned):
    """Return the signature with the names of our types in it."""
    # Twice, since what names itself is written out once more inside itself.
    for long, short in [*ALIASES.items()] * 2:
        signature = signature and signature.replace(long, short)
        returned = returned and returned.replace(long, short)
    # `None` is in each JSON value, and is the default of most that take one.
    return signature and signature.replace("JSONValue | None", "JSONValue"), returned
