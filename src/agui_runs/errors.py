"""The errors of the package: each says what is wrong and what to do next.

Two things can go wrong, and a host treats them differently. A
`ConfigurationError` is a mistake in the host or in its store, and needs a
developer. A `StreamError` is the ordinary life of a protocol (a second click, a
late answer, a stale copy), to be answered and not to be fixed.
"""

from typing import Literal, TypeAlias

StreamErrorCode: TypeAlias = Literal[
    "run_ended",
    "run_not_ended",
    "run_not_interrupted",
    "interrupt_decided",
    "interrupt_expired",
    "interrupt_changed",
    "resume_unknown",
    "resume_duplicate",
    "resume_incomplete",
    "resume_invalid",
]


class AguiRunsError(Exception):
    """Base of every error that this package raises on its own account.

    >>> from agui_runs import AguiRunsError, ConfigurationError, StreamError
    >>> issubclass(ConfigurationError, AguiRunsError), issubclass(StreamError, AguiRunsError)
    (True, True)
    """


class ConfigurationError(AguiRunsError, ValueError):
    """An argument or a stored dict that cannot be right.

    The text names the value, the place where it stands and what was expected
    there. It never shows what a host keeps in a snapshot, a failure or a
    message, so it can be logged as it is.

    >>> from agui_runs import Interrupt
    >>> Interrupt.create(tool_call_id="", arguments_digest="a1", expires_at=None)
    Traceback (most recent call last):
    agui_runs.errors.ConfigurationError: interrupt: tool_call_id must not be blank
    """


class StreamError(AguiRunsError):
    """A transition that the present state forbids, or an answer that AG-UI forbids.

    `code` is short and stable, fit for `code` of AG-UI's `RUN_ERROR` event. The
    text holds ids and status names only, so it may be sent to the client.

    >>> error = StreamError("run_ended", "run 'r-1' ended as cancelled")
    >>> error.code, str(error)
    ('run_ended', "run 'r-1' ended as cancelled")
    """

    code: StreamErrorCode

    def __init__(self, code: StreamErrorCode, message: str) -> None:
        # Pickling and copying call the class again with what Exception was given.
        super().__init__(code, message)
        self.code = code

    def __str__(self) -> str:
        return str(self.args[1])
