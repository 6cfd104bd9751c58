"""A dictionary of records, read and changed at random: python3 dict.py COUNT ACCESSES."""

import random
import sys

count, accesses = int(sys.argv[1]), int(sys.argv[2])
table = {number: [number, f"name-{number}"] for number in range(count)}
chance = random.Random(1)
total = 0
for _ in range(accesses):
    record = table[int(chance.random() * count)]
    record[0] += 1
    total += record[0] + len(record[1])
print(total)
