import enum

import numpy

from .utils import batch_space


class AutoresetMode(enum.Enum):
    NEXT_STEP = "NextStep"
    SAME_STEP = "SameStep"
    DISABLED = "Disabled"


class VectorEnv:
    metadata = {}
    spec = None
    render_mode = None
    closed = False

    def reset(self, *, seed=None, options=None):
        pass

    @property
    def unwrapped(self):
        return self

    def close(self, **kwargs):
        if not self.closed:
            self.close_extras(**kwargs)
            self.closed = True

    def close_extras(self, **kwargs):
        pass

    def __del__(self):
        if not getattr(self, "closed", True):
            self.close()


class SyncVectorEnv(VectorEnv):
    """One environment after another; what has ended begins anew in the step after."""

    def __init__(self, env_fns):
        self.envs = [make() for make in env_fns]
        self.num_envs = len(self.envs)
        self.metadata = {**self.envs[0].metadata, "autoreset_mode": AutoresetMode.NEXT_STEP}
        self.single_observation_space = self.envs[0].observation_space
        assert all(env.observation_space == self.single_observation_space for env in self.envs)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self._over = [False] * self.num_envs

    def reset(self, *, seed=None, options=None):
        answers = [env.reset(seed=None if seed is None else seed + i, options=options) for i, env in enumerate(self.envs)]
        return tuple(a[0] for a in answers), self._add([a[1] for a in answers])

    def _add(self, infos):
        """A column for each key; a number has the type that the first one has."""
        columns = {}
        for i, info in enumerate(infos):
            for key, value in info.items():
                kind = type(value) if type(value) in (int, float, bool) else object
                columns.setdefault(key, numpy.zeros(len(infos), kind))[i] = value
        return columns

    def step(self, actions):
        answers = []
        for i, (env, action) in enumerate(zip(self.envs, actions)):
            if self._over[i]:
                observation, info = env.reset()
                answers.append((observation, 0.0, False, False, info))
            else:
                answers.append(env.step(action))
            self._over[i] = answers[-1][2] or answers[-1][3]
        columns = list(zip(*answers))
        return columns[0], columns[1], columns[2], columns[3], self._add(columns[4])

    def close_extras(self, **kwargs):
        for env in self.envs:
            env.close()
