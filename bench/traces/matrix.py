"""Multiplies matrices, as lists of lists."""
n = 110
a = [[(i * j) % 17 + 0.5 for j in range(n)] for i in range(n)]
b = [[(i + j) % 13 - 0.5 for j in range(n)] for i in range(n)]
columns = list(zip(*b))
c = [[sum(x * y for x, y in zip(row, column)) for column in columns] for row in a]
print(sum(map(sum, c)))
