"""What a client says in the `resume` list of an AG-UI 1.0 `RunAgentInput`."""

from collections.abc import Mapping

from ._fields import get, kind
from .errors import StreamError
from .interrupt import Decision, Interrupt


def read_resume(entries: object) -> list[tuple[str, Decision]]:
    """Return the interrupt ids and what is decided on each, or raise `resume_invalid`."""
    if not isinstance(entries, (list, tuple)):
        raise _invalid(f"resume must be a list, not {kind(entries)}")
    return [_read_entry(entry, f"resume[{index}]") for index, entry in enumerate(entries)]


def _read_entry(entry: object, place: str) -> tuple[str, Decision]:
    if not isinstance(entry, Mapping):
        raise _no_object(place, entry)
    interrupt_id = get(entry, "interruptId")
    if not isinstance(interrupt_id, str):
        raise _invalid(f"{place}.interruptId must be a string")
    return str.__str__(interrupt_id), _read_decision(entry, place)


def _read_decision(entry: Mapping[object, object], place: str) -> Decision:
    given = get(entry, "status")
    status = str.__str__(given) if isinstance(given, str) else None
    if status == "cancelled":
        return Interrupt.CANCELLED
    if status != "resolved":
        raise _invalid(f"{place}.status must be 'resolved' or 'cancelled'")
    payload = get(entry, "payload")
    if not isinstance(payload, Mapping):
        raise _no_object(f"{place}.payload", payload)
    approved = get(payload, "approved")
    # Exactly true or false: a "false" or a 0 that reads as an answer is a forged grant.
    if not isinstance(approved, bool):
        raise _invalid(f"{place}.payload.approved must be true or false")
    if "editedArgs" in payload:
        raise _invalid(f"{place}.payload.editedArgs changes the request; ask for a new approval")
    return Interrupt.APPROVED if approved else Interrupt.DENIED


def _no_object(place: str, given: object) -> StreamError:
    problem = f"{place} must be an object, not {kind(given)}"
    # No client sends what JSON has no word for: the host has parsed its input into this.
    if given is not None and not isinstance(given, (str, int, float, list, tuple)):
        problem += "; pass plain dicts, as model_dump(by_alias=True) gives them"
    return _invalid(problem)


def _invalid(problem: str) -> StreamError:
    return StreamError("resume_invalid", problem)
