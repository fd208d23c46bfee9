"""The stored shapes as JSON Schema (2020-12), for whoever documents or validates them.

Both functions return a fresh dict that needs nothing beside it, so that it can stand inside
another schema. They say what `from_storage` takes, as far as a schema can: what it cannot
say stands in docs/storage.md. Nothing in the package reads a row by them.

The patterns mean the same to every regular expression engine: no `\\d` or `\\s`, which differ
in what they take beyond ASCII, and no look-ahead.
"""

from typing import Any

# Some character that is not among those that `str.isspace` knows.
_SAYS_SOMETHING = "[^\t-\r\x1c- \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"

_YEAR = "([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
_DATE = f"{_YEAR}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]+)?)?"
_ZONE = "(Z|[+-]([01][0-9]|2[0-3])(:?[0-5][0-9])?)"


def interrupt_schema() -> dict[str, Any]:
    """Return the schema of a stored Interrupt."""
    return {
        "title": "Interrupt",
        "description": "One request for the approval of one tool call, and the answer to it.",
        "type": "object",
        "properties": {
            "id": _text("Unique on its thread."),
            "toolCallId": _text("The one tool call that it concerns."),
            "argumentsDigest": _text("Digest of the arguments that were asked about."),
            "reason": _text("Why it is asked, such as `tool_call`."),
            "message": _or_null({"type": "string"}, "The prompt for whoever answers."),
            "status": {
                "description": "Pending, or the decision.",
                "enum": ["pending", "approved", "denied", "cancelled"],
            },
            "expiresAt": _or_null(_time(), "From this instant on it can only be cancelled."),
            "decidedAt": _or_null(_time(), "When it was decided; set if and only if it was."),
            "createdAt": _or_null(_time(), "When it was created."),
        },
        "required": ["id", "toolCallId", "argumentsDigest", "reason", "status", "expiresAt"],
        "if": {"properties": {"status": {"const": "pending"}}},
        "then": {"properties": {"decidedAt": {"type": "null"}}},
        "else": {"properties": {"decidedAt": {"type": "string"}}, "required": ["decidedAt"]},
    }


def run_record_schema() -> dict[str, Any]:
    """Return the schema of a stored RunRecord."""
    failure = {
        "type": "object",
        "properties": {
            "message": _text("What every reconnect is told."),
            "code": _or_null(_text(), "A short stable name for it."),
        },
        "required": ["message"],
        "additionalProperties": False,
    }
    interrupts = {"type": "array", "items": interrupt_schema()}
    return {
        "title": "RunRecord",
        "description": "The authoritative progress of one reserved run.",
        "type": "object",
        "properties": {
            "scope": _text("The host's tenant, actor or thread scope."),
            "threadId": _text("The AG-UI conversation."),
            "runId": _text("The run, unique within its scope and thread."),
            "digest": _text("Digest of the input that the run was reserved for."),
            "status": {
                "description": "Live (reserved, started), or how the run ended.",
                "enum": ["reserved", "started", "succeeded", "interrupted", "cancelled", "failed"],
            },
            "sequence": {
                "description": "The highest event number handed out.",
                "type": "integer",
                "minimum": 0,
            },
            "snapshot": {"description": "Any JSON value: the state that a reconnect serves."},
            "failure": _or_null(failure, "What went wrong, in the host's words; on a failed run."),
            "interrupts": _or_null(interrupts, "What the run asks; on an interrupted run."),
            "createdAt": _time("When the run was reserved."),
            "updatedAt": _time("When the record last changed."),
        },
        "required": [
            "scope",
            "threadId",
            "runId",
            "digest",
            "status",
            "sequence",
            "createdAt",
            "updatedAt",
        ],
        "allOf": [
            {
                "if": {"properties": {"status": {"const": "interrupted"}}},
                "then": {
                    "properties": {"interrupts": {"type": "array", "minItems": 1}},
                    "required": ["interrupts"],
                },
                "else": {"properties": {"interrupts": {"maxItems": 0}}},
            },
            {
                "if": {"properties": {"status": {"const": "failed"}}},
                "else": {"properties": {"failure": {"type": "null"}}},
            },
        ],
    }


def _described(schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"description": description, **schema} if description else schema


def _text(description: str = "") -> dict[str, Any]:
    return _described({"type": "string", "pattern": _SAYS_SOMETHING}, description)


def _time(description: str = "") -> dict[str, Any]:
    # For Python's engine `$` stands before a last line break too.
    time = {"type": "string", "pattern": f"^{_DATE}[T ]{_CLOCK}{_ZONE}$", "not": {"pattern": "\n"}}
    return _described(time, description)


def _or_null(schema: dict[str, Any], description: str) -> dict[str, Any]:
    return _described({"anyOf": [schema, {"type": "null"}]}, description)
