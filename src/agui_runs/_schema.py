from typing import Any


def interrupt() -> dict[str, Any]:
    return {"type": "object"}


def run_record() -> dict[str, Any]:
    return {"type": "object"}
