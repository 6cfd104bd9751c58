"""Writes lines of random letters and numbers, to be sorted: python3 lines.py COUNT FILE."""

import random
import sys

count, path = int(sys.argv[1]), sys.argv[2]
chance = random.Random(1)
with open(path, "w", encoding="ascii", buffering=1 << 20) as file:
    for _ in range(count // 1000):
        bits = [chance.getrandbits(120) for _ in range(1000)]
        file.writelines(f"{number >> 60:015x} {number & 0xFFFFFFFFFF:013d}\n" for number in bits)
