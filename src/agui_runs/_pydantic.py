"""What pydantic is told of our values, in its own plain dicts: nothing here imports pydantic."""

from typing import Any


def pydantic_schema(cls: Any) -> dict[str, Any]:
    """Return the core schema of a field that takes a value or its row, and dumps the row.

    A `ConfigurationError` is a `ValueError`, so pydantic makes of each refusal an error of
    its own, at the place of the field.
    """

    def read(given: Any) -> Any:
        return given._rechecked() if isinstance(given, cls) else cls.from_storage(given)

    return {
        "type": "function-plain",
        "function": {"type": "no-info", "function": read},
        "serialization": {"type": "function-plain", "function": cls.to_storage},
    }
