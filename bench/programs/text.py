"""Writes a text whose sentences come again much later: python3 text.py MEBIBYTES FILE."""

import random
import sys

size, path = int(sys.argv[1]) << 20, sys.argv[2]
chance = random.Random(1)
letters = "etaoinshrdlucmfwypvbgkjqxz"
words = ["".join(chance.choices(letters, k=chance.randint(2, 9))) for _ in range(30000)]
paragraphs = [" ".join(chance.choices(words, k=600)) for _ in range(16000)]
written = 0
with open(path, "w", encoding="ascii", buffering=1 << 20) as file:
    while written < size:
        paragraph = paragraphs[int(len(paragraphs) * chance.random())]
        start = chance.randrange(len(paragraph) // 2)
        text = f"{paragraph[start:]} {chance.getrandbits(96):024x}\n"
        written += file.write(text)
