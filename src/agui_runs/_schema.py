from typing import Any


def interrupt_schema() -> dict[str, Any]:
    return {"type": "object"}


def run_record_schema() -> dict[str, Any]:
    return {"type": "object"}
