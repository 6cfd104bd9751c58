"""Matrix products and element-wise temporaries in numpy: python3 products.py SIDE."""

import sys

import numpy

side = int(sys.argv[1])
chance = numpy.random.default_rng(1)
left = chance.random((side, side))
right = chance.random((side, side))
product = left @ right
scaled = (product * 2 + left) % 1.5 - right
narrow = numpy.ascontiguousarray(scaled.T[::4]) @ left
# Few digits, since the order of additions is the library's.
print(f"{scaled.sum():.6e} {product.max():.6e} {narrow.sum():.6e}")
