"""What a request says, within bounds: who asks, for what, and in which shape."""

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from store import HostError, Key

from agui_runs import StreamError

# What a client may send: bytes of a body, characters of an id. Yours may need more.
BODY_LIMIT = 1_000_000
ID_LIMIT = 200


def whose(request: Request) -> tuple[str, str]:
    """Return the scope of a request and its actor.

    Duty: a real host takes both from its authentication, and believes no header.
    """
    actor = request.headers.get("x-demo-actor")
    if not actor:
        raise HostError("not_authenticated", "the header x-demo-actor is missing", 401)
    return "shop-1", actor


async def body_of(request: Request) -> Any:
    """Return the JSON that was posted; it raises a ValueError or a RecursionError at other text."""
    # A page of another site can post a form in the name of its visitor, but it cannot post JSON.
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json":
        raise HostError("content_type_invalid", "the content type must be application/json", 415)
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > BODY_LIMIT:
            raise HostError("body_too_large", f"a body has at most {BODY_LIMIT} bytes", 413)
    return json.loads(body)


def text_in(fields: Any, name: str) -> str:
    """Return an id that a client has sent."""
    text = fields.get(name) if hasattr(fields, "get") else None
    if not isinstance(text, str) or len(text) > ID_LIMIT or not is_storable(text):
        problem = f"{name} must be text of at most {ID_LIMIT} characters"
        raise HostError("input_invalid", problem, 400)
    return text


def is_storable(text: str) -> bool:
    """Tell whether a text can be encoded; half of an emoji cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


async def json_of(request: Request) -> Any:
    """Return the JSON that was posted, or refuse what is none."""
    try:
        return await body_of(request)
    except (ValueError, RecursionError):
        raise HostError("input_invalid", "the body is not JSON", 400) from None


def key_in(scope: str, fields: Any) -> Key:
    """Return the key of the run that a client has named."""
    return scope, text_in(fields, "threadId"), text_in(fields, "runId")


async def refused(request: Request, refusal: Exception) -> Response:
    """Answer a request for which no stream has begun."""
    assert isinstance(refusal, HostError | StreamError)
    status = refusal.status if isinstance(refusal, HostError) else 409
    return JSONResponse({"code": refusal.code, "message": str(refusal)}, status)
