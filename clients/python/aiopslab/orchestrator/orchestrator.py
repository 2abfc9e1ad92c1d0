"""The orchestrator: it stands between an agent and the lab."""

import asyncio
import inspect
import os
import pathlib
import time
from typing import Any, Dict, Optional, Tuple, Union

from .. import client as _client
from ..session import Session
from ..utils.status import ResponseParsingError, SessionPrint, SubmissionStatus
from .parser import ResponseParser
from .problems.problem import Problem
from .problems.registry import ProblemRegistry

_NEXT = "Please take the next action"
# A session of the server needs a limit when it begins, and start_problem says it later.
_ENOUGH = 1_000_000


class Orchestrator:
    """Takes a registered agent through problems, one at a time."""

    def __init__(self, results_dir: Union[str, pathlib.Path, None] = None, client: Optional[_client.Client] = None) -> None:
        self.client = client or _client.default()
        self.results_dir = results_dir
        self.agent: Any = None
        self.agent_name: Optional[str] = None
        self.session: Optional[Session] = None
        self.parser = ResponseParser(self.client)
        self.probs = ProblemRegistry(self.client)
        self.sprint = SessionPrint()
        self.use_wandb = os.environ.get("USE_WANDB", "").lower() == "true"
        self.execution_start_time: Optional[float] = None
        self.execution_end_time: Optional[float] = None

    def register_agent(self, agent: Any, name: str = "agent") -> None:
        """Say who works on the problems, and what the records call it."""
        self.agent = agent
        self.agent_name = name

    def init_problem(self, problem_id: str, **settings: Any) -> Tuple[str, str, Dict[str, str]]:
        """Bring a problem about, and return what an agent is told: the description, the
        instructions, and the documentation of each action. It returns when the fault shows.

        The problem is an id, or a YAML file of one's own. Settings are those of a session, such as
        seed and max_time (in seconds)."""
        self.discard()
        self.execution_start_time = time.time()
        problem = Problem(problem_id, self.client)
        remote = problem.open(**{"name": self.agent_name or "agent", "max_steps": _ENOUGH, **settings})
        self.session = Session(results_dir=self.results_dir)
        self.session.session_id = remote.id
        self.session.set_problem(problem, pid=problem_id)
        self.session.set_agent(self.agent_name)
        return problem.get_task_description(), problem.get_instructions(), problem.get_available_actions()

    def discard(self) -> None:
        """End a problem that was brought about and is not to be worked on."""
        if self.session is not None:
            self.session.problem.discard()

    async def ask_agent(self, input: str) -> str:
        """Have the agent say what it does next, and keep it in the history."""
        session = self._current()
        response = self.agent.get_action(input)
        if inspect.isawaitable(response):
            response = await response
        session.add({"role": "assistant", "content": response})
        return response

    async def ask_env(self, input: str) -> Union[str, SubmissionStatus]:
        """Do what a response asks for, and keep the reply in the history. A submission is answered with
        its status, everything else with text."""
        session = self._current()
        reply = await asyncio.to_thread(session.problem.act, input)
        session.add({"role": "env", "content": str(reply)})
        if reply is SubmissionStatus.VALID_SUBMISSION:
            session.set_solution(await asyncio.to_thread(self._solution, input))
        return reply

    def _solution(self, response: str) -> Any:
        """What a response that is a submission hands in."""
        try:
            call = self.parser.parse(response)
        except ResponseParsingError:
            return None
        values = call["args"] + list(call["kwargs"].values())
        return values[0] if len(values) == 1 else values

    def _current(self) -> Session:
        if self.agent is None or self.session is None or self.session.problem.remote is None:
            raise RuntimeError("register_agent and init_problem come first")
        return self.session

    async def start_problem(self, max_steps: int) -> Dict[str, Any]:
        """Let the agent act until it submits or has taken its steps, and return the history, the
        reply to the last step, the results, and the seconds that the framework took. The session
        stays, in ``session``."""
        session = self._current()
        problem, reply = session.problem, ""  # type: Problem, Any
        session.start()
        try:
            observation, taken = _NEXT, 0
            while not problem.over and taken < max_steps:
                action = await self.ask_agent(observation)
                self.sprint.agent(action)
                reply = await self.ask_env(action)
                self.sprint.service(reply)
                observation, taken = "%s\n%s" % (reply, _NEXT), taken + 1
            session.end()
            if problem.over:
                outcome = await asyncio.to_thread(problem.remote.outcome)
            else:
                outcome = await asyncio.to_thread(problem.remote.give_up, "no submission within %d steps" % max_steps)
        except BaseException:
            problem.discard()
            raise
        problem.remote = None
        results = outcome["results"]
        session.pid = outcome["problem"]  # If the problem was a file, its id is known by now.
        session.set_results(results)
        self.sprint.result(results)
        if self.results_dir is not None:
            session.to_json()
        if self.use_wandb:
            session.to_wandb()
        self.execution_end_time = time.time()
        took = next((results[key] for key in ("TTD", "TTL", "TTA", "TTM") if key in results), 0)
        return {
            "history": session.history,
            "final_state": reply,
            "results": results,
            "framework_overhead": self.execution_end_time - self.execution_start_time - took,
            "outcome": outcome,
        }
