"""Immutable run records and approval requests for agent servers that speak AG-UI."""

from ._digest import digest
from ._json import JSONValue
from .errors import AguiRunsError, ConfigurationError, StreamError
from .interrupt import Decision, Interrupt, InterruptStatus
from .run_record import RunRecord, RunStatus, TerminalStatus

__version__ = "1.0.0rc1"

__all__ = [
    "AguiRunsError",
    "ConfigurationError",
    "Decision",
    "Interrupt",
    "InterruptStatus",
    "JSONValue",
    "RunRecord",
    "RunStatus",
    "StreamError",
    "TerminalStatus",
    "digest",
]
