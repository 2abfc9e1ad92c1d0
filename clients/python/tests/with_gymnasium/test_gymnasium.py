"""Tests of the environments with Gymnasium, or a stand-in if it is not installed, against a server at
AIOPSLAB_URL that grades detections by their answer."""

import pathlib
import sys
import unittest

try:
    import gymnasium
    import numpy
except ImportError:
    sys.path.insert(0, str(pathlib.Path(__file__).parent / "standin"))
    import gymnasium
    import numpy

from gymnasium.utils.env_checker import check_env
from gymnasium.vector import SyncVectorEnv

from aiopslab import registration
from aiopslab.gym import Env, VectorEnv

FAULTY = "revoke_auth_mongodb-detection-1"
HEALTHY = "noop_detection_hotel_reservation-1"
LOOK = '```\nget_logs("ns", "geo")\n```'
YES = '```\nsubmit("Yes")\n```'


def make(**settings):
    return gymnasium.make("AIOpsLab-v0", problems=[FAULTY], **settings)


class EnvTest(unittest.TestCase):
    def test_checker(self):
        with make(render_mode="ansi") as env:
            check_env(env.unwrapped)

    def test_made(self):
        with make(render_mode="ansi") as env:
            self.assertIsInstance(env.unwrapped, Env)
            self.assertIsInstance(env, gymnasium.Env)
            self.assertEqual(env.spec.id, "AIOpsLab-v0")
            self.assertTrue(env.spec.nondeterministic)
            with self.assertRaises(gymnasium.error.ResetNeeded):
                env.step(LOOK)
            observation, info = env.reset(seed=7)
            self.assertEqual(env.render(), observation)
            self.assertIn(observation, env.observation_space)
            self.assertIn("Grüße ✓", env.observation_space)
            self.assertNotIn("x" * (1 << 20) + "x", env.observation_space)
            self.assertNotIn(3, env.action_space)
            _, reward, terminated, truncated, info = env.step(YES)
            self.assertEqual((reward, terminated, truncated, info["class"]), (1.0, True, False, "solved"))

    def test_by_module(self):
        registration.register()  # Once more, and nothing happens.
        with gymnasium.make("aiopslab.gym:AIOpsLab-v0", problems=FAULTY, max_steps=3) as env:
            env.reset()

    def test_wrappers(self):
        class Louder(gymnasium.Wrapper):
            def step(self, action):
                observation, *rest = self.env.step(action)
                return (observation.upper(), *rest)

        with Louder(make(max_episode_steps=1)) as env:
            env.reset()
            observation, _, terminated, truncated, _ = env.step(LOOK)
            self.assertEqual((terminated, truncated), (False, True))
            self.assertIn("DID GET_LOGS", observation)

    def test_errors(self):
        env = make().unwrapped
        with self.assertRaises(gymnasium.error.ResetNeeded):
            env.step(LOOK)
        with self.assertRaisesRegex(ValueError, "no option level"):
            env.reset(options={"level": 3})
        env.close()
        env.close()
        for use in (env.reset, lambda: env.step(LOOK)):
            with self.assertRaises(gymnasium.error.ClosedEnvironmentError):
                use()

    def test_sync_vector(self):
        envs = SyncVectorEnv([make, make])
        try:
            observations, _ = envs.reset(seed=1)
            self.assertIn(observations, envs.observation_space)
            _, rewards, terminated, _, infos = envs.step((YES, LOOK))
            self.assertEqual((list(rewards), list(terminated)), ([1, 0], [True, False]))
            self.assertEqual(infos["class"][0], "solved")
            _, rewards, terminated, _, _ = envs.step((LOOK, YES))
            self.assertEqual((list(rewards), list(terminated)), ([0, 1], [False, True]))
        finally:
            envs.close()


class VectorEnvTest(unittest.TestCase):
    def test_vector(self):
        envs = gymnasium.make_vec("AIOpsLab-v0", num_envs=2, problems=[FAULTY])
        try:
            self.assertIsInstance(envs.unwrapped, VectorEnv)
            self.assertIsInstance(envs.unwrapped, gymnasium.vector.VectorEnv)
            self.assertEqual((envs.num_envs, envs.metadata["autoreset_mode"].name), (2, "NEXT_STEP"))
            observations, infos = envs.reset(seed=3)
            self.assertIn(observations, envs.observation_space)
            self.assertIn(observations[0], envs.single_observation_space)
            self.assertIn((LOOK, YES), envs.action_space)
            self.assertEqual(list(infos["_task"]), [True, True])
            observations, rewards, terminated, truncated, infos = envs.step((YES, LOOK))
            for column, kind in ((rewards, float), (terminated, bool), (truncated, bool)):
                self.assertIsInstance(column, numpy.ndarray)
                self.assertEqual(column.dtype, kind)
            self.assertEqual((rewards.tolist(), terminated.tolist()), ([1, 0], [True, False]))
            self.assertEqual(infos["_class"].tolist(), [True, False])
            self.assertEqual(infos["results"][0]["success"], True)
            self.assertIsInstance(infos["results"][0]["TTD"], float)
            _, rewards, _, _, _ = envs.step((YES, YES))  # The first begins anew.
            self.assertEqual(rewards.tolist(), [0, 1])
            envs.reset(seed=[4, None])
            with self.assertRaises(ValueError):
                envs.reset(seed=[4])
        finally:
            envs.close()
        with self.assertRaises(gymnasium.error.ClosedEnvironmentError):
            envs.step((YES, YES))


if __name__ == "__main__":
    unittest.main()
