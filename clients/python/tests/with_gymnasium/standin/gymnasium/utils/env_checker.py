import copy
import inspect

from ..core import Env
from ..spaces import Space
from ..wrappers import check_reset, check_step


def check_env(env, skip_render_check=False):
    """What the documentation of Gymnasium's checker says that it asks of an environment."""
    assert isinstance(env, Env) and env.unwrapped is env
    assert isinstance(env.action_space, Space) and isinstance(env.observation_space, Space)
    assert not callable(getattr(env, "seed", None)), "seeds are for reset"
    signature = inspect.signature(env.reset).parameters
    assert signature["seed"].default is None and "options" in signature and "return_info" not in signature
    check_reset(env, env.reset())

    check_reset(env, env.reset(seed=123))
    first = copy.deepcopy(env.unwrapped._np_random)
    assert first is not None, "reset does not pass its seed on"
    check_reset(env, env.reset(seed=123))
    assert env.unwrapped._np_random.getstate() == first.getstate()
    check_reset(env, env.reset(seed=456))
    assert env.unwrapped._np_random.getstate() != first.getstate()
    check_reset(env, env.reset(options={}))
    check_step(env, env.step(env.action_space.sample()))

    if env.render_mode == "ansi":
        assert isinstance(env.render(), str)
    if env.spec is not None:
        for mode in env.metadata["render_modes"]:
            other = env.spec.make(render_mode=mode)
            other.reset()
            assert other.render_mode == mode and isinstance(other.render(), str)
            other.close()
        other = env.spec.make()
        other.close()
        other.close()
