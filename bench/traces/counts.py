"""Counts words in a dictionary, then reads it by rank and at random."""
counts = {}
state = 1
for _ in range(200_000):
    state = state * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
    key = (state >> 33) % (1 + (state >> 20) % 60_000)
    counts[key] = counts.get(key, 0) + 1
ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
print(len(counts), ranked[:3], sum(counts.get(key, 0) for key in range(0, 60_000, 7)))
