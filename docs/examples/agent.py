"""The agent of the example server and its tool: a script, where yours has a model.

It proposes a refund for each order that the user names, and says what became of each. Beside it
stands what only this host knows: who may decide, and which corrections of a refund make sense.
"""

import re
from collections.abc import AsyncIterator
from typing import Any, NamedTuple, TypeAlias
from uuid import uuid4

from store import HostError

Arguments: TypeAlias = dict[str, str]

TOOL_NAME = "refund"
REVIEWERS = ("alice", "bob")
CORRECTABLE = ("amount",)


class Proposal(NamedTuple):
    """A tool call that is wanted and needs an approval."""

    call_id: str
    arguments: Arguments
    question: str


def proposal(arguments: Arguments) -> Proposal:
    """Return the proposal of a refund, as a call of its own."""
    amount, currency, order = (arguments[name] for name in ("amount", "currency", "orderId"))
    return Proposal(f"call-{uuid4()}", arguments, f"Refund {amount} {currency} for order {order}?")


async def scripted_agent(question: str, results: list[str]) -> AsyncIterator[str | Proposal]:
    """Yield what the agent says and proposes, given a question or the results of its calls."""
    if results:
        yield f"This is what became of it. {' '.join(results)}"
        return
    orders = re.findall(r"\b[A-Z]-\d+\b", question)
    yield "I propose a refund." if orders else "Which order is it about?"
    for order in orders:
        yield proposal({"orderId": order, "amount": "20.00", "currency": "EUR"})


async def refund(arguments: Arguments) -> str:
    """Make the refund. Yours may take long, fail, and tell secrets in its exceptions.

    Where it cannot tell whether it has failed, as after a timeout, let it return a text saying so.
    """
    return f"Refunded {arguments['amount']} {arguments['currency']} for {arguments['orderId']}."


def authorise(actor: str) -> None:
    """Refuse whoever may not decide about refunds, or no longer may."""
    if actor not in REVIEWERS:
        raise HostError("not_authorised", "you may not decide about refunds", 403)


def corrected(arguments: Arguments, correction: Any) -> Arguments:
    """Return the refund that a reviewer wants instead of this one: another amount, and no more."""
    amount = correction.get("amount") if isinstance(correction, dict) else None
    if not isinstance(amount, str) or not re.fullmatch(r"\d{1,6}\.\d\d", amount, re.ASCII):
        raise HostError("correction_invalid", "the amount must be text such as 12.50", 400)
    if correction != {**arguments, "amount": amount} or correction == arguments:
        raise HostError("correction_invalid", "the amount can be corrected, and nothing else", 400)
    return {**arguments, "amount": amount}
