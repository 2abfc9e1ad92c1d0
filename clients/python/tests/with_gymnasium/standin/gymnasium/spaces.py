import random
import string


class Space:
    def __init__(self, dtype=None, seed=None):
        self.dtype = dtype
        self._random = random.Random(seed)

    def seed(self, seed=None):
        self._random = random.Random(seed)
        return seed

    def __contains__(self, x):
        return self.contains(x)


class Text(Space):
    """Strings of a length, out of a set of characters."""

    def __init__(self, max_length, *, min_length=1, charset=string.ascii_letters + string.digits, seed=None):
        assert 0 <= min_length <= max_length
        self.min_length, self.max_length = min_length, max_length
        self._characters = tuple(charset)
        super().__init__(str, seed)

    @property
    def character_set(self):
        return frozenset(self._characters)

    def character_index(self, char):
        return self._characters.index(char)

    def sample(self, mask=None):
        return "".join(self._random.choices(self._characters, k=self._random.randint(self.min_length, self.max_length)))

    def contains(self, x):
        return isinstance(x, str) and self.min_length <= len(x) <= self.max_length and set(x) <= self.character_set

    def __eq__(self, other):
        same = ("min_length", "max_length", "character_set")
        return isinstance(other, Text) and all(getattr(self, a) == getattr(other, a) for a in same)


class Tuple(Space):
    def __init__(self, spaces, seed=None):
        self.spaces = tuple(spaces)
        super().__init__(None, seed)

    def sample(self):
        return tuple(s.sample() for s in self.spaces)

    def contains(self, x):
        return isinstance(x, tuple) and len(x) == len(self.spaces) and all(v in s for v, s in zip(x, self.spaces))
