"""A problem, as its id names it."""

from typing import Any, Dict, Optional, Union

from ... import client as _client
from ...utils.status import InvalidActionError, SubmissionStatus


class Problem:
    """A problem. :meth:`open` brings it about; then it can be asked what an agent is told, and act."""

    def __init__(self, id: str, client: _client.Client) -> None:
        self.id = id
        self.client = client
        self.remote: Optional[_client.Session] = None
        self.over = False
        self._told: Dict[str, Any] = {}

    def open(self, **settings: Any) -> _client.Session:
        """Begin a session of the problem, and return when the fault shows."""
        self.remote = self.client.open(self.id, **settings)
        try:
            self._told = self.remote.problem()
        except BaseException:
            self.discard()
            raise
        return self.remote

    def discard(self) -> None:
        """End a session that is not to be worked on any more."""
        remote, self.remote = self.remote, None
        if remote is not None:
            try:
                remote.cancel()
            except _client.Error:
                pass  # It has failed, and is gone.

    def get_task_description(self) -> str:
        return self._told["description"]

    def get_instructions(self) -> str:
        return self._told["instructions"]

    def get_available_actions(self) -> Dict[str, str]:
        return self._told["actions"]

    @property
    def namespace(self) -> str:
        return self._told["namespace"]

    def act(self, response: str) -> Union[str, SubmissionStatus]:
        """Take a step by a response, and return what came of it."""
        if self.remote is None:
            raise RuntimeError("open the problem first")
        turn = self.remote.act(response)
        self.over = turn["over"]
        return SubmissionStatus.VALID_SUBMISSION if turn["submitted"] else turn["observation"]

    def perform_action(self, action_name: str, *args: Any, **kwargs: Any) -> Union[str, SubmissionStatus]:
        """Take a step by an action and its arguments."""
        if action_name not in self.get_available_actions():
            raise InvalidActionError(action_name)
        arguments = [repr(a) for a in args] + ["%s=%r" % item for item in kwargs.items()]
        return self.act("```\n%s(%s)\n```" % (action_name, ", ".join(arguments)))
