import copy
import dataclasses
import importlib
from typing import Any, Optional

from ..error import UnregisteredEnv
from ..wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

registry = {}


@dataclasses.dataclass
class EnvSpec:
    id: str
    entry_point: Any = None
    nondeterministic: bool = False
    max_episode_steps: Optional[int] = None
    order_enforce: bool = True
    disable_env_checker: bool = False
    kwargs: dict = dataclasses.field(default_factory=dict)
    vector_entry_point: Any = None

    def make(self, **kwargs):
        return make(self, **kwargs)


def register(id, entry_point=None, **settings):
    registry[id] = EnvSpec(id, entry_point, **settings)


def find(id):
    if isinstance(id, EnvSpec):
        return copy.deepcopy(id)
    module, _, name = id.rpartition(":")
    if module:
        importlib.import_module(module)
    if name not in registry:
        raise UnregisteredEnv("nobody has registered %s" % name)
    return copy.deepcopy(registry[name])


def load(point):
    module, name = point.split(":")
    return getattr(importlib.import_module(module), name)


def make(id, max_episode_steps=None, **kwargs):
    spec = find(id)
    spec.kwargs.update(kwargs)
    create = load(spec.entry_point)
    mode = spec.kwargs.get("render_mode")
    assert mode is None or mode in create.metadata["render_modes"]
    env = create(**spec.kwargs)
    env.unwrapped.spec = spec
    if not spec.disable_env_checker:
        env = PassiveEnvChecker(env)
    if spec.order_enforce:
        env = OrderEnforcing(env)
    limit = max_episode_steps or spec.max_episode_steps
    return TimeLimit(env, limit) if limit else env


def make_vec(id, num_envs=1, **kwargs):
    spec = find(id)
    spec.kwargs.update(kwargs, num_envs=num_envs)
    env = load(spec.vector_entry_point)(**spec.kwargs)
    env.unwrapped.spec = spec
    return env
