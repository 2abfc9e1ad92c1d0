import copy

from ..spaces import Tuple


def batch_space(space, n=1):
    """The space of many texts: a tuple of their spaces."""
    return Tuple(copy.deepcopy(space) for _ in range(n))
