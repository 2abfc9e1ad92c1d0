from .core import Wrapper
from .error import ResetNeeded


class OrderEnforcing(Wrapper):
    """A step needs a reset before it."""

    ready = False

    def reset(self, **kwargs):
        self.ready = True
        return super().reset(**kwargs)

    def step(self, action):
        if not self.ready:
            raise ResetNeeded("reset comes before step")
        return super().step(action)


class PassiveEnvChecker(Wrapper):
    """Looks at what an environment returns."""

    def reset(self, **kwargs):
        return check_reset(self, super().reset(**kwargs))

    def step(self, action):
        return check_step(self, super().step(action))


class TimeLimit(Wrapper):
    def __init__(self, env, max_episode_steps):
        super().__init__(env)
        self.limit, self.taken = max_episode_steps, 0

    def reset(self, **kwargs):
        self.taken = 0
        return super().reset(**kwargs)

    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        self.taken += 1
        return observation, reward, terminated, truncated or self.taken >= self.limit, info


def check_reset(env, answer):
    assert isinstance(answer, tuple) and len(answer) == 2, "reset returns an observation and an info"
    observation, info = answer
    assert observation in env.observation_space, "the observation is not in its space"
    assert isinstance(info, dict)
    return answer


def check_step(env, answer):
    assert isinstance(answer, tuple) and len(answer) == 5, "step returns five values"
    observation, reward, terminated, truncated, info = answer
    assert observation in env.observation_space, "the observation is not in its space"
    assert isinstance(reward, float) and reward == reward, "the reward is a number"
    assert type(terminated) is bool and type(truncated) is bool
    assert isinstance(info, dict)
    return answer
