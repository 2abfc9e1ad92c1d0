"""What problems there are."""

from typing import Any, Callable, Dict, List, Optional

from ... import client as _client
from .problem import Problem


class ProblemRegistry:
    """The problems of a server."""

    def __init__(self, client: Optional[_client.Client] = None) -> None:
        self._client = client or _client.default()

    @property
    def PROBLEM_REGISTRY(self) -> Dict[str, Callable[[], Problem]]:
        """What makes a problem, by its id."""
        return {id: self._maker(id) for id in self._client.problems()}

    def _maker(self, id: str) -> Callable[[], Problem]:
        return lambda: Problem(id, self._client)

    def get_problem_instance(self, problem_id: str) -> Problem:
        """The problem with an id. Nothing is started until it is opened."""
        make = self.get_problem(problem_id)
        if make is None:
            raise ValueError("Problem ID %s not found in registry." % problem_id)
        return make()

    def get_problem(self, problem_id: str) -> Optional[Callable[[], Problem]]:
        """What makes the problem with an id, or None."""
        return self._maker(problem_id) if problem_id in self._client.problems() else None

    def get_problem_ids(self, task_type: Optional[str] = None) -> List[str]:
        """The ids of the problems, or those of a task."""
        return [id for id in self._client.problems() if task_type is None or task_type in id]

    def get_problem_count(self, task_type: Optional[str] = None) -> int:
        return len(self.get_problem_ids(task_type))

    def get_problem_deployment(self, problem_id: str) -> str:
        """What a problem is deployed on: a Kubernetes cluster, always."""
        return "k8s"
