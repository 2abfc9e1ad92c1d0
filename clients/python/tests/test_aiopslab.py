"""Tests against a server at AIOPSLAB_URL that grades detections by their answer."""

import asyncio
import configparser
import copy
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from aiopslab import client, paths
from aiopslab.gym import ClosedEnvironmentError, Env, ResetNeeded, VectorEnv
from aiopslab.orchestrator import Orchestrator
from aiopslab.orchestrator.parser import ResponseParser
from aiopslab.orchestrator.problems.registry import ProblemRegistry
from aiopslab.session import Session, SessionItem
from aiopslab.utils.actions import get_actions
from aiopslab.utils.status import InvalidActionError, ResponseParsingError, SubmissionStatus

OWN = """id: mine-{task}-1
title: nothing is wrong with mine
app: hotel-reservation
load: {rate: 10}
tasks: [detection]
"""

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
        self.assertIs(out["final_state"], SubmissionStatus.VALID_SUBMISSION)
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
        self.assertEqual(session["trace"], [item.model_dump() for item in out["history"]])
        self.assertLessEqual(session["start_time"], session["end_time"])

    def test_unknown_problem(self):
        with self.assertRaisesRegex(client.Error, "there is no problem"):
            Orchestrator().init_problem("nope")

    def test_order(self):
        with self.assertRaisesRegex(RuntimeError, "come first"):
            asyncio.run(Orchestrator().start_problem(3))

    def test_own_problem(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "mine.yaml")
            file.write_text(OWN)
            orchestrator = Orchestrator()
            orchestrator.register_agent(Scripted('```\nsubmit("No")\n```'), name="mine")
            orchestrator.init_problem(str(file), task="detection")
            out = asyncio.run(orchestrator.start_problem(max_steps=3))
            self.assertEqual(out["outcome"]["problem"], "mine-detection-1")
            self.assertIs(out["results"]["success"], True)
            self.assertEqual(orchestrator.session.pid, "mine-detection-1")
            file.write_text("id: x")
            with self.assertRaisesRegex(client.Error, "document: title is missing"):
                client.default().open(str(file))

    def test_one_step_after_another(self):
        """As AIOpsLab's own loops use it: by ask_agent and ask_env."""
        orchestrator = Orchestrator()
        agent = Scripted(LOOK, "hm", YES)
        orchestrator.register_agent(agent, name="mine")
        orchestrator.init_problem(FAULTY)

        async def steps():
            first = await orchestrator.ask_env(await orchestrator.ask_agent("go"))
            second = await orchestrator.ask_env(await orchestrator.ask_agent(first))
            return first, second, await orchestrator.ask_env(await orchestrator.ask_agent(second))

        first, second, third = asyncio.run(steps())
        self.assertIn("did get_logs", first)
        self.assertTrue(second.startswith("Error parsing response"))
        self.assertIs(third, SubmissionStatus.VALID_SUBMISSION)
        self.assertEqual(agent.observed, ["go", first, second])
        self.assertEqual(orchestrator.session.solution, "Yes")
        self.assertEqual([item.role for item in orchestrator.session.history], ["assistant", "env"] * 3)
        orchestrator.discard()

    def test_session_stays(self):
        """AIOpsLab's service reads the session when the problem is over."""
        orchestrator = Orchestrator()
        orchestrator.register_agent(Scripted(LOOK, YES), name="mine")
        orchestrator.init_problem(FAULTY)
        before = time.time()
        out = asyncio.run(orchestrator.start_problem(max_steps=5))
        raw = orchestrator.session.to_dict()
        self.assertEqual(list(raw), ["agent", "session_id", "problem_id", "start_time", "end_time", "trace", "results"])
        self.assertEqual(raw["session_id"], out["outcome"]["id"])
        self.assertEqual((raw["agent"], raw["problem_id"]), ("mine", FAULTY))
        self.assertTrue(before <= raw["start_time"] <= raw["end_time"] <= time.time())
        raw["trace"].insert(0, {"role": "system", "content": "prompt"})
        self.assertEqual([turn["role"] for turn in raw["trace"]], ["system", "assistant", "env", "assistant", "env"])
        self.assertEqual(orchestrator.session.solution, "Yes")

    def test_registry(self):
        registry = ProblemRegistry()
        self.assertIsNone(registry.get_problem("nope"))
        with self.assertRaisesRegex(ValueError, "nope not found"):
            registry.get_problem_instance("nope")
        self.assertEqual(registry.get_problem(FAULTY)().id, FAULTY)
        self.assertEqual(registry.get_problem_deployment(FAULTY), "k8s")
        self.assertEqual(registry.get_problem_count(), len(registry.get_problem_ids()))
        problem = registry.get_problem_instance(FAULTY)
        problem.open(name="direct")
        self.assertIn("submit", problem.get_available_actions())
        self.assertIn("did get_logs [a b'c]", problem.perform_action("get_logs", "a", "b'c"))
        with self.assertRaisesRegex(InvalidActionError, "Invalid action: dance"):
            problem.perform_action("dance")
        self.assertIs(problem.perform_action("submit", has_anomaly="Yes"), SubmissionStatus.VALID_SUBMISSION)
        problem.discard()
        self.assertIn(FAULTY, ProblemRegistry().PROBLEM_REGISTRY)
        self.assertIn(FAULTY, Orchestrator().probs.get_problem_ids("detection"))
        self.assertNotIn(FAULTY, Orchestrator().probs.get_problem_ids("mitigation"))


class ParserTest(unittest.TestCase):
    """Responses and how AIOpsLab means them."""

    def parse(self, text):
        return ResponseParser().parse(text)

    def test_calls(self):
        command = """kubectl patch svc a -n b --type='json' -p='[{"op": "replace", "path": "/spec/ports/0/targetPort", "value": 9090}]'"""
        for call, name, args, kwargs in [
            ("myApi()", "myApi", [], {}),
            ("myApi(10)", "myApi", [10], {}),
            ("myApi(10, 'error')", "myApi", [10, "error"], {}),
            ('exec_shell("kubectl get pods -n shop")', "exec_shell", ["kubectl get pods -n shop"], {}),
            ('exec_shell("%s")' % command, "exec_shell", [command], {}),
            ("submit('yes')", "submit", ["yes"], {}),
            ("submit(has_anomaly='yes')", "submit", [], {"has_anomaly": "yes"}),
            ("submit(['a','b'])", "submit", [["a", "b"]], {}),
            ("submit(faulty_components=['a', 'b'])", "submit", [], {"faulty_components": ["a", "b"]}),
            ("submit({'system_level': 'x', 'fault_type': 'y'})", "submit", [{"system_level": "x", "fault_type": "y"}], {}),
            ("submit()", "submit", [], {}),
        ]:
            for form in ("Action:\n```\n%s\n```", "        Action:\n        ```\n        %s\n        ```\n        "):
                with self.subTest(call=call, form=form):
                    got = self.parse(form % call)
                    self.assertEqual((got["api_name"], got["args"], got["kwargs"]), (name, args, kwargs))

    def test_context(self):
        got = self.parse("Thought: look.\n\nAction:\n```get_logs('a', 'b')```\nThat will help.")
        self.assertEqual(got["context"], ["Thought: look.\n\nAction:", "That will help."])

    def test_no_call(self):
        for text in ('```\necho "Hello World"\n```', "", "nothing"):
            with self.assertRaisesRegex(ResponseParsingError, "^Error parsing response: "):
                self.parse(text)

    def test_actions(self):
        actions = get_actions("detection")
        self.assertLessEqual({"get_logs", "get_metrics", "read_metrics", "get_traces", "read_traces", "exec_shell", "submit"}, set(actions))
        self.assertIn("get_logs(namespace: str", actions["get_logs"])
        looks = get_actions("detection", "read")
        self.assertIn("get_logs", looks)
        self.assertNotIn("exec_shell", looks)
        self.assertNotIn("submit", looks)


class SessionTest(unittest.TestCase):
    def test_history(self):
        session = Session()
        session.add(SessionItem(role="assistant", content="a"))
        session.add([{"role": "env", "content": "b"}, {"role": "assistant", "content": "c"}])
        session.add(None)
        self.assertEqual([item.content for item in session.history], ["a", "b", "c"])
        with self.assertRaises(TypeError):
            session.add(3)
        session.clear()
        self.assertEqual(session.history, [])

    def test_file(self):
        with tempfile.TemporaryDirectory() as folder:
            session = Session(results_dir=folder)
            self.assertIsNone(session.start_time)
            session.set_problem(None, pid="p")
            session.set_agent("a")
            session.start()
            session.add({"role": "assistant", "content": "hi"})
            session.end()
            session.set_results({"success": True})
            session.to_json()
            (file,) = pathlib.Path(folder).iterdir()
            self.assertEqual(file.name, "%s_%s.json" % (session.session_id, session.start_time))
            other = Session(results_dir=folder)
            other.from_json(file.name)
            self.assertEqual(other.to_dict(), session.to_dict())
            self.assertEqual(other.get_duration(), session.get_duration())


class PackageTest(unittest.TestCase):
    """What pip installs."""

    def test_metadata(self):
        if importlib.util.find_spec("setuptools") is None:
            return  # Nobody builds the package here.
        with tempfile.TemporaryDirectory() as folder:
            copy = shutil.copytree(".", folder + "/src", ignore=shutil.ignore_patterns("__pycache__", "tests"))
            command = [sys.executable, "-W", "ignore", "-c", "import setuptools; setuptools.setup()", "-q", "egg_info", "build"]
            subprocess.run(command, cwd=copy, check=True, capture_output=True)
            (info,) = pathlib.Path(copy).glob("*.egg-info")
            entries = configparser.ConfigParser()
            entries.read(info / "entry_points.txt")
            self.assertEqual(entries["gymnasium.envs"]["__root__"], "aiopslab.registration:register")
            self.assertIn("Requires-Python: >=3.9", (info / "PKG-INFO").read_text())
            built = pathlib.Path(copy, "build", "lib")
            files = sorted(str(p.relative_to(copy)) for p in pathlib.Path(copy, "aiopslab").rglob("*") if p.is_file())
            self.assertEqual(files, sorted(str(p.relative_to(built)) for p in built.rglob("*") if p.is_file()))
            self.assertIn("aiopslab/py.typed", files)

    def test_paths(self):
        self.assertTrue((paths.BASE_DIR / "paths.py").exists())
        self.assertNotIn(paths.BASE_DIR, paths.RESULTS_DIR.parents)


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

    def test_session_token(self):
        lab = copy.deepcopy(client.default())
        mine, other = lab.open(HEALTHY), lab.open(HEALTHY)
        agent = client.Session(client.Client(lab.url, mine.token), mine.id)
        self.assertEqual(agent.problem()["task"], "detection")
        agent.call("get_logs", namespace="a", service="b")
        for refused, status in [
            (client.Session(agent.client, other.id).info, 404),
            (client.Session(agent.client, other.id).problem, 404),
            (lambda: list(client.Session(agent.client, other.id).events()), 404),
            (agent.client.sessions, 403),
            (lambda: agent.client.open(HEALTHY), 403),
            (agent.cancel, 403),
        ]:
            with self.assertRaises(client.Error) as e:
                refused()
            self.assertEqual(e.exception.status, status)
        self.assertTrue(agent.submit("No")["solved"])
        mine.cancel()
        other.cancel()

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
            with self.assertRaisesRegex(ResetNeeded, "reset the environment"):
                env.step(LOOK)
            with self.assertRaisesRegex(ValueError, "no option sede; there is: problem"):
                env.reset(options={"sede": 3})
        env.close()
        for use in (env.reset, lambda: env.step(LOOK)):
            with self.assertRaisesRegex(ClosedEnvironmentError, "closed"):
                use()
        with self.assertRaisesRegex(ValueError, "ansi"):
            Env(FAULTY, render_mode="human")

    def test_own_problem(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "mine.yaml")
            file.write_text(OWN)
            with Env([str(file), HEALTHY], seed=2, render_mode="ansi") as env:
                seen = set()
                for _ in range(12):
                    observation, _ = env.reset()
                    self.assertEqual(env.render(), observation)
                    *_, info = env.step('```\nsubmit("No")\n```')
                    seen.add(info["problem"])
                self.assertEqual(seen, {"mine-detection-1", HEALTHY})

    def test_truncated(self):
        with Env(FAULTY, max_steps=1) as env:
            env.reset()
            _, reward, terminated, truncated, info = env.step("hm")
            self.assertEqual((reward, terminated, truncated, info["valid"]), (0, False, True, True))

    def test_side_by_side(self):
        with VectorEnv(FAULTY, 3) as envs:
            observations, infos = envs.reset()
            self.assertEqual((len(observations), infos["task"], infos["_task"]), (3, ["detection"] * 3, [True] * 3))
            for _ in range(2):
                _, rewards, terminated, _, infos = envs.step([YES, YES, LOOK])
                self.assertEqual((rewards, terminated), ([1, 1, 0], [True, True, False]))
                self.assertEqual((infos["class"], infos["_class"]), (["solved", "solved", None], [True, True, False]))
                _, rewards, terminated, _, _ = envs.step([YES] * 3)  # Two begin anew.
                self.assertEqual((rewards, terminated), ([0, 0, 1], [False, False, True]))
                envs.reset()
            with self.assertRaisesRegex(ValueError, "2 actions for 3"):
                envs.step([YES] * 2)
        with self.assertRaises(ClosedEnvironmentError):
            envs.reset()
        envs.close()

    def test_snapshot(self):
        with Env([FAULTY, HEALTHY], seed=2, max_steps=4, reward={"step": -0.5}) as env, Env(HEALTHY, render_mode="ansi") as other:
            with self.assertRaises(ResetNeeded):
                env.snapshot()
            env.reset()
            for _ in range(2):
                seen, *_ = env.step(LOOK)
            here = env.snapshot()
            observation, reward, terminated, truncated, info = env.restore(here)
            self.assertEqual((observation, reward, terminated, truncated), (seen, -1.0, False, False))
            self.assertEqual(info["restored"], {"steps": 2, "same": 2})
            self.assertNotIn("seed", info)
            with self.assertRaisesRegex(client.Error, "no snapshot"):
                other.restore(here)  # A token reaches one environment.
            *_, one = env.step(YES)
            self.assertEqual(one["class"], "search")
            env.restore(here)  # A submitted episode is no hindrance.
            *_, two = env.step(YES)
            self.assertEqual((one["problem"], one["seed"]), (two["problem"], two["seed"]))
            env.drop(here)
            with self.assertRaisesRegex(client.Error, "no snapshot"):
                env.restore(here)

    def test_snapshots_side_by_side(self):
        with VectorEnv([FAULTY, HEALTHY], 3, seed=7) as envs:
            envs.reset()
            envs.step([LOOK] * 3)
            snapshots = envs.snapshot()
            envs.step([LOOK, YES, LOOK])
            _, rewards, terminated, _, infos = envs.restore([snapshots[1]] * 3)
            self.assertEqual((rewards, terminated, infos["step"]), ([0] * 3, [False] * 3, [1] * 3))
            self.assertEqual(infos["restored"], [{"steps": 1, "same": 1}] * 3)
            _, rewards, terminated, _, infos = envs.step([YES] * 3)
            self.assertEqual((terminated, len(set(infos["seed"])), len(set(rewards))), ([True] * 3, 1, 1))
            envs.drop(snapshots[1])
            for use in (lambda: envs.drop(snapshots[1]), lambda: envs.restore(snapshots)):
                with self.assertRaisesRegex(client.Error, "no snapshot"):
                    use()
            with self.assertRaisesRegex(ValueError, "2 snapshots for 3"):
                envs.restore(snapshots[:2])
            envs.reset()

    def test_snapshots_of_all_or_none(self):
        with VectorEnv(FAULTY, 2) as envs:
            with self.assertRaisesRegex(ResetNeeded, "no episode"):
                envs.snapshot()
            envs.reset()
            envs.step([LOOK, YES])
            with self.assertRaisesRegex(ResetNeeded, "no episode"):
                envs.snapshot()
            *_, infos = envs.step([YES, LOOK])  # The second begins anew.
            self.assertEqual(infos["class"], ["solved", None])
            envs.step([LOOK, LOOK])
            envs.client.request("POST", "/envs/%s/step" % envs.ids[1], {"action": YES}, envs.token)
            for _ in range(65):  # More than there may be.
                with self.assertRaisesRegex(ResetNeeded, "reset the environment"):
                    envs.snapshot()

    def test_selected(self):
        with Env(suite="aiopslab", task="detection", app="hotel-reservation", seed=3) as env:
            seen = set()
            for _ in range(6):
                env.reset()
                *_, info = env.step(YES)
                seen.add(info["problem"])
            self.assertGreater(len(seen), 1)
        with self.assertRaisesRegex(client.Error, "no suite"):
            Env(suite="hotels")

    def test_shaped(self):
        with Env(FAULTY, reward="shaped") as env:
            env.reset()
            self.assertEqual(env.step(YES)[1], 1)  # Nobody can say how users fare.
        with self.assertRaisesRegex(client.Error, "shaped"):
            Env(FAULTY, reward="shapely")

    def test_vector_seeds(self):
        def draw(envs, **reset):
            envs.reset(**reset)
            *_, infos = envs.step([YES] * 3)
            return list(zip(infos["problem"], infos["seed"]))

        with VectorEnv([FAULTY, HEALTHY], 3, seed=7) as envs:
            first = draw(envs)
            self.assertEqual(draw(envs, seed=7), first)
            self.assertEqual(draw(envs, seed=[9, 8, 7])[2], first[0])

    def test_member_is_gone(self):
        with VectorEnv(FAULTY, 2) as envs:
            envs.reset()
            envs.client.request("DELETE", "/envs/" + envs.ids[1])
            with self.assertRaisesRegex(ClosedEnvironmentError, "no environment"):
                envs.step([LOOK, LOOK])

    def test_member_fails(self):
        with VectorEnv(FAULTY, 2) as envs:
            envs.reset()
            answers = {"results": [{"env": "a", "error": {"status": 502, "detail": "killed"}}, {"env": "b", "error": {"status": 409, "detail": "x"}}]}
            truncated = ("", 0.0, False, True, {"valid": False, "error": "killed"})
            self.assertEqual(envs._member(answers["results"][0]), truncated)
            with self.assertRaises(ResetNeeded):
                envs._member(answers["results"][1])


if __name__ == "__main__":
    unittest.main()
