"""As much of numpy as the environments use: an array of one dimension."""


class ndarray(list):
    def __init__(self, values, dtype):
        super().__init__(values)
        self.dtype = dtype

    def __setitem__(self, i, value):
        if self.dtype is not object and type(value) not in (self.dtype, int, bool, float):
            raise TypeError("%r is no %s" % (value, self.dtype.__name__))
        super().__setitem__(i, value if self.dtype is object else self.dtype(value))

    def tolist(self):
        return list(self)


def zeros(n, dtype=float):
    return ndarray([None if dtype is object else dtype() for _ in range(n)], dtype)
