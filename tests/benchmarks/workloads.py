"""The data that is timed: stored rows of three sizes, and snapshots of any size."""

import json
from datetime import UTC, datetime
from typing import Any

NOW = datetime(2026, 11, 30, 10, 5, 0, 250_125, tzinfo=UTC)
CREATED = datetime(2026, 11, 30, 10, 0, 0, 731_904, tzinfo=UTC)
EXPIRES = datetime(2026, 11, 30, 11, 0, tzinfo=UTC)

SIZES = {"W1": (0, 0), "W2": (2 * 1024, 2), "W3": (256 * 1024, 50)}
"""For each size, the bytes of JSON text that the snapshot takes, and the interrupts."""

TEXTS = (
    "Refund 20.00 EUR to the card that paid for it?",
    "The order left the warehouse this morning.",
    "Größere Beträge brauchen eine zweite Freigabe.",
    "I looked the customer up and found two accounts.",
    "Nothing else is open for this customer.",
)


def message(index: int) -> dict[str, Any]:
    """Return one message of a conversation: 4 containers and 14 scalars.

    The first eight say one sentence, the next eight two, and so on up to five and again.
    """
    return {
        "id": f"message-{index:06}",
        "role": "assistant" if index % 2 else "user",
        "content": " ".join(TEXTS[: 1 + index // 8 % len(TEXTS)]),
        "final": index % 3 == 0,
        "usage": {"input": 100 + index, "output": 7 * index % 900, "cost": index / 128},
        "parts": [
            {"kind": "text", "start": 0, "end": 12, "annotation": None, "trusted": True},
            index,
            "end",
        ],
    }


def snapshot(size: int) -> Any:
    """Return a conversation of about that many bytes of JSON text; None for no bytes."""
    if not size:
        return None
    messages: list[Any] = []
    while size > 150:  # Half a message, so that the last one brings it nearest.
        messages.append(message(len(messages)))
        size -= len(json.dumps(messages[-1], ensure_ascii=False)) + 2
    return {"title": "Refunds", "turn": len(messages), "messages": messages}


def stored_interrupt(index: int) -> dict[str, Any]:
    """Return the stored form of one pending interrupt."""
    return {
        "id": f"7b0f7a52-95a0-4b43-9f0e-{index:012}",
        "toolCallId": f"call-{index}",
        "reason": "tool_call",
        "message": "Refund 20.00 EUR?",
        "expiresAt": "2026-11-30T11:00:00.000000Z",
        "status": "pending",
        "decidedAt": None,
        "argumentsDigest": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "createdAt": "2026-11-30T10:00:00.731904Z",
    }


def stored(size: int, interrupts: int) -> dict[str, Any]:
    """Return a stored row; without interrupts it is started, with them it is interrupted."""
    return {
        "scope": "tenant-1",
        "threadId": "thread-0000000001",
        "runId": "run-0000000001",
        "digest": "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
        "status": "interrupted" if interrupts else "started",
        "sequence": 1000,
        "snapshot": snapshot(size),
        "failure": None,
        "interrupts": [stored_interrupt(index) for index in range(interrupts)],
        "createdAt": "2026-11-30T10:00:00.731904Z",
        "updatedAt": "2026-11-30T10:04:59.018277Z",
    }


def resume(count: int) -> list[dict[str, Any]]:
    """Return the AG-UI `resume` list that approves the first interrupts of a row."""
    return [
        {
            "interruptId": stored_interrupt(index)["id"],
            "status": "resolved",
            "payload": {"approved": True},
        }
        for index in range(count)
    ]


SMALL_ARGUMENTS = {"order": "A-1042", "amount": 20.5, "currency": "EUR", "lines": [1, 2]}
"""The arguments of an ordinary tool call."""
