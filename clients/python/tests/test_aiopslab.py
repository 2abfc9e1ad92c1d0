"""Tests against a server at AIOPSLAB_URL that grades detections by their answer."""

import asyncio
import json
import os
import pathlib
import tempfile
import threading
import unittest

from aiopslab import client
from aiopslab.gym import Env, VectorEnv
from aiopslab.orchestrator import Orchestrator
from aiopslab.orchestrator.problems.registry import ProblemRegistry

FAULTY = "revoke_auth_mongodb-detection-1"
HEALTHY = "noop_detection_hotel_reservation-1"


class Scripted:
    """An agent that gives its responses, and keeps what it observes."""

    def __init__(self, *responses):
        self.responses = list(responses)
        self.observed = []

    async def get_action(self, observation):
        self.observed.append(observation)
        response = self.responses.pop(0)
        if isinstance(response, Exception):
            raise response
        return response


class Sync(Scripted):
    def get_action(self, observation):
        return "```\nsubmit(\"Yes\")\n```"


LOOK = '```\nget_logs("ns", "geo")\n```'
YES = '```\nsubmit("Yes")\n```'


class OrchestratorTest(unittest.TestCase):
    def run_agent(self, agent, max_steps=5, **settings):
        orchestrator = Orchestrator(**settings)
        orchestrator.register_agent(agent, name="mine")
        self.briefing = orchestrator.init_problem(FAULTY)
        return asyncio.run(orchestrator.start_problem(max_steps=max_steps))

    def test_solved(self):
        agent = Scripted(LOOK, YES)
        out = self.run_agent(agent)
        description, instructions, actions = self.briefing
        self.assertTrue(description.startswith("You are"))
        self.assertTrue(instructions)
        self.assertIn("get_logs(namespace: str", actions["get_logs"])
        self.assertEqual(agent.observed[0], "Please take the next action")
        self.assertTrue(agent.observed[1].endswith("\nPlease take the next action"))
        self.assertEqual([turn["role"] for turn in out["history"]], ["assistant", "env"] * 2)
        self.assertEqual(out["history"][0]["content"], LOOK)
        self.assertEqual(out["final_state"], "SubmissionStatus.VALID_SUBMISSION")
        self.assertIs(out["results"]["success"], True)
        self.assertIsInstance(out["framework_overhead"], float)
        self.assertEqual(out["outcome"]["agent"], "mine")

    def test_sync_agent(self):
        self.assertIs(self.run_agent(Sync())["results"]["success"], True)

    def test_step_limit(self):
        out = self.run_agent(Scripted(LOOK, LOOK, LOOK), max_steps=2)
        self.assertEqual(len(out["history"]), 4)
        self.assertEqual(out["outcome"]["class"], "agent")
        self.assertEqual(out["outcome"]["why"], "no submission within 2 steps")

    def test_agent_raises(self):
        with self.assertRaisesRegex(ValueError, "no idea"):
            self.run_agent(Scripted(LOOK, ValueError("no idea")))
        newest = client.default().sessions()[-1]
        self.assertEqual(newest["state"], "done")
        self.assertEqual(newest["outcome"]["class"], "inconclusive")

    def test_results_dir(self):
        with tempfile.TemporaryDirectory() as folder:
            out = self.run_agent(Scripted(LOOK, YES), results_dir=folder + "/results")
            (file,) = pathlib.Path(folder, "results").iterdir()
            session = json.loads(file.read_text())
        self.assertEqual(list(session), ["agent", "session_id", "problem_id", "start_time", "end_time", "trace", "results"])
        self.assertEqual(session["problem_id"], FAULTY)
        self.assertEqual(session["trace"], out["history"])

    def test_unknown_problem(self):
        with self.assertRaisesRegex(client.Error, "there is no problem"):
            Orchestrator().init_problem("nope")

    def test_order(self):
        with self.assertRaisesRegex(RuntimeError, "come first"):
            asyncio.run(Orchestrator().start_problem(3))

    def test_registry(self):
        self.assertIn(FAULTY, ProblemRegistry().PROBLEM_REGISTRY)
        self.assertIn(FAULTY, Orchestrator().probs.get_problem_ids("detection"))
        self.assertNotIn(FAULTY, Orchestrator().probs.get_problem_ids("mitigation"))


class ClientTest(unittest.TestCase):
    def test_session(self):
        lab = client.Client(os.environ["AIOPSLAB_URL"], os.environ["AIOPSLAB_TOKEN"])
        self.assertEqual(lab.health()["status"], "healthy")
        self.assertIn("runbook", lab.agents())
        session = lab.open(HEALTHY, name="c", seed=3)
        self.assertEqual(session.problem()["task"], "detection")
        self.assertEqual(session.call("get_logs", namespace="a", service="b")["action"], "get_logs")
        self.assertEqual(session.observation()["step"], 1)
        kinds = []
        watcher = threading.Thread(target=lambda: kinds.extend(e["kind"] for e in session.events()))
        watcher.start()
        self.assertTrue(session.submit("No")["solved"])
        watcher.join()
        self.assertEqual(kinds[-1], "verdict")
        self.assertEqual(len(session.record()), len(kinds) + 1)
        self.assertEqual(session.info()["state"], "done")
        with self.assertRaises(client.Error) as e:
            session.act("too late")
        self.assertEqual(e.exception.status, 409)

    def test_simulate(self):
        session = client.default().simulate(FAULTY, "oracle", max_steps=None)
        self.assertEqual([turn["role"] for turn in session["trace"]], ["system", "user", "assistant"])

    def test_token(self):
        with self.assertRaises(client.Error) as e:
            client.Client(os.environ["AIOPSLAB_URL"], "wrong").problems()
        self.assertEqual(e.exception.status, 401)


class GymTest(unittest.TestCase):
    def test_episodes(self):
        with Env([FAULTY, HEALTHY], seed=2, reward={"step": -0.5}) as env:
            seen = set()
            for _ in range(8):
                observation, info = env.reset()
                self.assertTrue(observation.endswith("Please take the next action"))
                observation, reward, terminated, truncated, info = env.step(LOOK)
                self.assertEqual((reward, terminated, truncated), (-0.5, False, False))
                _, reward, terminated, truncated, info = env.step({"name": "submit", "arguments": {"has_anomaly": "Yes"}})
                self.assertEqual((terminated, truncated), (True, False))
                self.assertEqual(reward, 0.5 if info["problem"] == FAULTY else -0.5)
                seen.add(info["problem"])
            self.assertEqual(seen, {FAULTY, HEALTHY})
            _, info = env.reset(seed=1, options={"problem": HEALTHY})
            *_, info = env.step('```\nsubmit("No")\n```')
            self.assertEqual(info["class"], "solved")
        env.close()

    def test_truncated(self):
        with Env(FAULTY, max_steps=1) as env:
            env.reset()
            _, reward, terminated, truncated, info = env.step("hm")
            self.assertEqual((reward, terminated, truncated, info["valid"]), (0, False, True, True))

    def test_side_by_side(self):
        with VectorEnv(FAULTY, 3) as envs:
            observations, infos = envs.reset()
            self.assertEqual((len(observations), len(infos)), (3, 3))
            for _ in range(2):
                _, rewards, terminated, _, _ = envs.step([YES, YES, LOOK])
                self.assertEqual((rewards, terminated), ([1, 1, 0], [True, True, False]))
                _, rewards, terminated, _, _ = envs.step([YES] * 3)  # Two begin anew.
                self.assertEqual((rewards, terminated), ([0, 0, 1], [False, False, True]))
                envs.reset()


if __name__ == "__main__":
    unittest.main()
