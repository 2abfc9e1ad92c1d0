"""The ids of the problems."""

from ... import client as _client


class ProblemRegistry:
    """What problems there are."""

    def __init__(self, client=None):
        self._client = client or _client.default()

    @property
    def PROBLEM_REGISTRY(self):
        """A dictionary with the ids of the problems as keys."""
        return dict.fromkeys(self._client.problems())

    def get_problem_ids(self, task_type=None):
        """The ids of the problems, or those of a task."""
        return [id for id in self._client.problems() if task_type is None or task_type in id]

    def get_problem_count(self, task_type=None):
        return len(self.get_problem_ids(task_type))
