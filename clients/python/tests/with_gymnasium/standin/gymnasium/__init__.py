"""A stand-in for Gymnasium where that is not installed: as much of its documented contract as an
environment has to do with, and no more. Tests that pass with it are meant to pass with the real one."""

from . import error as error
from . import spaces as spaces
from . import vector as vector
from . import wrappers as wrappers
from .core import Env as Env
from .core import Wrapper as Wrapper
from .envs.registration import make as make
from .envs.registration import make_vec as make_vec
from .envs.registration import register as register
