"""The actions of a task, and the marks that AIOpsLab puts on functions that are actions."""

from typing import Any, Callable, Dict, Optional, TypeVar

from .. import client as _client

F = TypeVar("F", bound=Callable[..., Any])


def _marked(function: F, kind: Optional[str]) -> F:
    function.is_action = True  # type: ignore[attr-defined]
    if kind is not None:
        function.action_type = kind  # type: ignore[attr-defined]
    return function


def action(function: F) -> F:
    """Mark a function as an action."""
    return _marked(function, None)


def read(function: F) -> F:
    """Mark a function as an action that only looks."""
    return _marked(function, "read")


def write(function: F) -> F:
    """Mark a function as an action that changes something."""
    return _marked(function, "write")


def get_actions(task: str, subtype: Optional[str] = None, client: Optional[_client.Client] = None) -> Dict[str, str]:
    """The documentation of each action of a task by its name. The subtype is read or write, for those
    alone."""
    actions = (client or _client.default()).actions(task)
    return {a["name"]: a["doc"] for a in actions if subtype is None or a["kind"] == subtype}
