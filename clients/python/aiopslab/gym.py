"""Environments for training, in the shape of Gymnasium's.

    with Env("revoke_auth_mongodb-detection-1") as env:
        observation, info = env.reset(seed=1)
        while True:
            observation, reward, terminated, truncated, info = env.step(policy(observation))
            if terminated or truncated:
                break

An action is text with one call in it, or a dictionary with ``name`` and ``arguments``. Between
episodes the application is reset in place, which is quick; a problem with another application takes a
new cluster. At the end of an episode ``info["valid"]`` is False if it says nothing of the agent, such
as when the machine was too busy: leave it out.
"""

import concurrent.futures

from . import client as _client


class Env:
    """One environment. Problems are one id, or several to draw from. Settings are those of the API:
    name, seed, max_steps, max_time (in seconds), keep_records, and reward, a dictionary with solved,
    failed, step and invalid."""

    metadata = {"render_modes": []}
    render_mode = None

    def __init__(self, problems, client=None, **settings):
        self.client = client or _client.default()
        ids = [problems] if isinstance(problems, str) else list(problems)
        self.id = self.client.make_env(problems=ids, **settings)

    @property
    def unwrapped(self):
        return self

    def reset(self, *, seed=None, options=None):
        """Begin an episode: the observation is the whole briefing. A seed begins a new sequence of
        problems and loads; ``options={"problem": id}`` chooses the problem."""
        body = {}
        if seed is not None:
            body["seed"] = seed
        if options:
            body["options"] = options
        answer = self.client.request("POST", "/envs/%s/reset" % self.id, body)
        return answer["observation"], answer["info"]

    def step(self, action):
        """Take a step."""
        a = self.client.request("POST", "/envs/%s/step" % self.id, {"action": action})
        return a["observation"], a["reward"], a["terminated"], a["truncated"], a["info"]

    def render(self):
        return None

    def close(self):
        """End the environment. It may be called again."""
        id, self.id = self.id, None
        if id is not None:
            self.client.request("DELETE", "/envs/" + id)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class VectorEnv:
    """Several environments side by side. An episode that has ended is followed by the next one in the
    step after, whose action is not heeded and whose reward is 0."""

    def __init__(self, problems, num_envs, client=None, seed=1, **settings):
        self.num_envs = num_envs
        self._pool = concurrent.futures.ThreadPoolExecutor(num_envs)
        self.envs = []
        try:
            for i in range(num_envs):
                self.envs.append(Env(problems, client, seed=seed + i, **settings))
        except BaseException:
            self.close()
            raise
        self._over = [True] * num_envs

    def reset(self, *, seed=None, options=None):
        """Begin an episode everywhere."""
        seeds = [None if seed is None else seed + i for i in range(self.num_envs)]
        answers = list(self._pool.map(lambda env, s: env.reset(seed=s, options=options), self.envs, seeds))
        self._over = [False] * self.num_envs
        return tuple(zip(*answers))

    def step(self, actions):
        """Take a step everywhere, and return lists."""
        answers = list(self._pool.map(self._step, range(self.num_envs), actions))
        self._over = [terminated or truncated for _, _, terminated, truncated, _ in answers]
        return tuple(list(column) for column in zip(*answers))

    def _step(self, i, action):
        if self._over[i]:
            observation, info = self.envs[i].reset()
            return observation, 0.0, False, False, info
        return self.envs[i].step(action)

    def close(self):
        for env in self.envs:
            env.close()
        self._pool.shutdown()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
