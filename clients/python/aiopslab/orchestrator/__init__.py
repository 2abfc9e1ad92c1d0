"""AIOpsLab's orchestrator.

    orchestrator = Orchestrator()
    orchestrator.register_agent(agent, name="mine")
    problem_desc, instructions, actions = orchestrator.init_problem(problem_id)
    agent.init_context(problem_desc, instructions, actions)
    asyncio.run(orchestrator.start_problem(max_steps=30))

An agent has one method, ``get_action(observation)``, async or not: it returns text with one call in
it.
"""

import asyncio
import inspect
import json
import pathlib
import time

from .. import client as _client
from .problems.registry import ProblemRegistry

_NEXT = "Please take the next action"
# A session of the server needs a limit when it begins, and start_problem says it later.
_ENOUGH = 1_000_000


class Orchestrator:
    """Takes a registered agent through problems, one at a time."""

    def __init__(self, results_dir=None, client=None):
        self.client = client or _client.default()
        self.results_dir = results_dir
        self.agent = None
        self.agent_name = None
        self.session = None
        self.probs = ProblemRegistry(self.client)
        self._began = None

    def register_agent(self, agent, name="agent"):
        """Say who works on the problems, and what the records call it."""
        self.agent = agent
        self.agent_name = name

    def init_problem(self, problem_id, **settings):
        """Bring a problem about, and return what an agent is told: the description, the
        instructions, and the documentation of each action. It returns when the fault shows.
        Settings are those of a session, such as seed and max_time (in seconds)."""
        self.discard()
        self._began = time.time()
        settings = {"name": self.agent_name or "agent", "max_steps": _ENOUGH, **settings}
        self.session = self.client.open(problem_id, **settings)
        try:
            problem = self.session.problem()
        except BaseException:
            self.discard()
            raise
        return problem["description"], problem["instructions"], problem["actions"]

    def discard(self):
        """End a problem that was brought about and is not to be worked on."""
        session, self.session = self.session, None
        if session is not None:
            try:
                session.cancel()
            except _client.Error:
                pass  # It has failed, and is gone.

    async def start_problem(self, max_steps):
        """Let the agent act until it submits or has taken its steps, and return the history, the
        reply to the last step, the results, and the seconds that the framework took."""
        if self.agent is None or self.session is None:
            raise RuntimeError("register_agent and init_problem come first")
        session, history, final = self.session, [], None
        try:
            observation, over = _NEXT, False
            while not over and len(history) < 2 * max_steps:
                action = self.agent.get_action(observation)
                if inspect.isawaitable(action):
                    action = await action
                turn = await asyncio.to_thread(session.act, action)
                final, over = turn["observation"], turn["over"]
                history += [{"role": "assistant", "content": action}, {"role": "env", "content": final}]
                observation = final + "\n" + _NEXT
            if over:
                outcome = await asyncio.to_thread(session.outcome)
            else:
                outcome = await asyncio.to_thread(session.give_up, "no submission within %d steps" % max_steps)
        except BaseException:
            self.discard()
            raise
        self.session = None
        if self.results_dir is not None:
            self._save(outcome, history)
        results = outcome["results"]
        took = next((results[key] for key in ("TTD", "TTL", "TTA", "TTM") if key in results), 0)
        return {
            "history": history,
            "final_state": final,
            "results": results,
            "framework_overhead": time.time() - self._began - took,
            "outcome": outcome,
        }

    def _save(self, outcome, history):
        """Write the session in AIOpsLab's format."""
        folder = pathlib.Path(self.results_dir)
        folder.mkdir(parents=True, exist_ok=True)
        session = {
            "agent": outcome["agent"],
            "session_id": outcome["id"],
            "problem_id": outcome["problem"],
            "start_time": outcome["start_time"],
            "end_time": outcome["end_time"],
            "trace": history,
            "results": outcome["results"],
        }
        file = folder / ("%s_%s.json" % (outcome["id"], outcome["start_time"]))
        file.write_text(json.dumps(session, indent=4) + "\n")
