import random


class Env:
    metadata = {"render_modes": []}
    render_mode = None
    spec = None
    _np_random = None
    _np_random_seed = None

    def reset(self, *, seed=None, options=None):
        if seed is not None:
            if not isinstance(seed, int) or seed < 0:
                raise ValueError("a seed is a whole number, and not negative")
            self._np_random, self._np_random_seed = random.Random(seed), seed

    def step(self, action):
        raise NotImplementedError

    def render(self):
        raise NotImplementedError

    def close(self):
        pass

    @property
    def np_random(self):
        if self._np_random is None:
            self._np_random = random.Random()
        return self._np_random

    @property
    def unwrapped(self):
        return self

    def get_wrapper_attr(self, name):
        return getattr(self, name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
        return False


class Wrapper(Env):
    def __init__(self, env):
        assert isinstance(env, Env), "a wrapper is around an Env"
        self.env = env

    def reset(self, *, seed=None, options=None):
        return self.env.reset(seed=seed, options=options)

    def step(self, action):
        return self.env.step(action)

    def render(self):
        return self.env.render()

    def close(self):
        return self.env.close()

    @property
    def unwrapped(self):
        return self.env.unwrapped

    @property
    def spec(self):
        return self.env.spec

    @property
    def render_mode(self):
        return self.env.render_mode

    @property
    def metadata(self):
        return self.env.metadata

    @property
    def observation_space(self):
        return self.env.observation_space

    @property
    def action_space(self):
        return self.env.action_space
