"""A session as AIOpsLab keeps it: who worked on what, what was said, and what came of it."""

import dataclasses
import json
import time
from pathlib import Path
from typing import Any, Dict, List, Optional, Union
import uuid

from . import paths


@dataclasses.dataclass
class SessionItem:
    """Something that was said: by the agent, whose role is assistant, or by env."""

    role: str
    content: str

    @classmethod
    def model_validate(cls, item: Any) -> "SessionItem":
        """Make an item of a dictionary with a role and a content."""
        return cls(role=item["role"], content=str(item["content"]))

    def model_dump(self) -> Dict[str, str]:
        return {"role": self.role, "content": self.content}

    def __getitem__(self, key: str) -> str:
        return self.model_dump()[key]


class Session:
    """A session. Its times are those of the agent's turn, in Unix seconds."""

    def __init__(self, results_dir: Union[str, Path, None] = None) -> None:
        self.session_id: Any = uuid.uuid4()  # Until the server has given it one.
        self.pid: Optional[str] = None
        self.problem: Any = None
        self.solution: Any = None
        self.results: Dict[str, Any] = {}
        self.history: List[SessionItem] = []
        self.start_time: Optional[float] = None
        self.end_time: Optional[float] = None
        self.agent_name: Optional[str] = None
        self.results_dir = results_dir

    def set_problem(self, problem: Any, pid: Optional[str] = None) -> None:
        self.problem = problem
        self.pid = pid

    def set_solution(self, solution: Any) -> None:
        self.solution = solution

    def set_results(self, results: Dict[str, Any]) -> None:
        self.results = results

    def set_agent(self, agent_name: Optional[str]) -> None:
        self.agent_name = agent_name

    def add(self, item: Any) -> None:
        """Add an item to the history: a SessionItem, a dictionary, or a list of them."""
        if not item:
            return
        if isinstance(item, SessionItem):
            self.history.append(item)
        elif isinstance(item, dict):
            self.history.append(SessionItem.model_validate(item))
        elif isinstance(item, list):
            for part in item:
                self.add(part)
        else:
            raise TypeError("a session item is a SessionItem, a dict or a list, not %s" % type(item).__name__)

    def clear(self) -> None:
        self.history = []

    def start(self) -> None:
        """Say that the agent's turn begins."""
        self.start_time = time.time()

    def end(self) -> None:
        """Say that the agent's turn is over."""
        self.end_time = time.time()

    def get_duration(self) -> float:
        """How many seconds the agent's turn took."""
        if self.start_time is None or self.end_time is None:
            raise ValueError("the session has not ended")
        return self.end_time - self.start_time

    def to_dict(self) -> Dict[str, Any]:
        return {
            "agent": self.agent_name,
            "session_id": str(self.session_id),
            "problem_id": self.pid,
            "start_time": self.start_time,
            "end_time": self.end_time,
            "trace": [item.model_dump() for item in self.history],
            "results": self.results,
        }

    def _folder(self) -> Path:
        return Path(self.results_dir) if self.results_dir else paths.RESULTS_DIR

    def to_json(self) -> None:
        """Write the session to a file in the directory of results."""
        folder = self._folder()
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / ("%s_%s.json" % (self.session_id, self.start_time))
        file.write_text(json.dumps(self.to_dict(), indent=4) + "\n")

    def from_json(self, filename: str) -> None:
        """Read the session from a file in the directory of results."""
        data = json.loads((self._folder() / filename).read_text())
        self.agent_name = data.get("agent")
        self.session_id = data.get("session_id")
        self.pid = data.get("problem_id")
        self.start_time = data.get("start_time")
        self.end_time = data.get("end_time")
        self.results = data.get("results")
        self.history = [SessionItem.model_validate(item) for item in data.get("trace") or []]

    def to_wandb(self) -> None:
        """Log the session to Weights & Biases, which must be installed."""
        import wandb  # type: ignore[import-not-found]

        wandb.log(self.to_dict())
