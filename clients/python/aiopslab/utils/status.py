"""How a submission or a response can end, and what is printed of a session."""

import enum
import os
from typing import Any


class SubmissionStatus(enum.Enum):
    """What becomes of a submission. Valid does not mean correct."""

    VALID_SUBMISSION = 1
    INVALID_SUBMISSION = 2


class ResponseParsingError(Exception):
    """No call can be read from a response."""

    def __init__(self, message: str) -> None:
        super().__init__("Error parsing response: " + message)
        self.message = message


class InvalidActionError(Exception):
    """There is no such action."""

    def __init__(self, action_name: str) -> None:
        super().__init__("Invalid action: " + action_name)
        self.action_name = action_name


class SessionPrint:
    """Prints a session as it goes, if AIOPSLAB_PRINT_SESSION is set."""

    def __init__(self) -> None:
        self.enable_printing = bool(os.environ.get("AIOPSLAB_PRINT_SESSION"))

    def agent(self, action: str) -> None:
        if self.enable_printing:
            print("Agent:\n%s" % action)

    def service(self, response: Any) -> None:
        if self.enable_printing:
            print("Service:\n%s" % response)

    def result(self, results: Any) -> None:
        if self.enable_printing:
            print("Results:\n%s" % results)
