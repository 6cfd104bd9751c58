"""Thirty processes, three of which work at a time.

Starts workers of 60 to 147 MB, then has three of them work at a time, until all have worked twice.
Prints their sums, and on stderr the seconds in which they worked.
"""

import subprocess
import sys
import time

WORKERS = 30
AT_A_TIME = 3
TURNS = 2
PASSES = "12"

workers = []
for number in range(WORKERS):
    command = ["node", "worker.js", str(60 + 3 * number), PASSES]
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    workers.append(worker)
    # As many begin at a time as work at a time.
    if number % AT_A_TIME == AT_A_TIME - 1:
        for begun in workers[-AT_A_TIME:]:
            assert begun.stdout.readline() == "ready\n"
start = time.monotonic()
for turn in range(TURNS):
    for first in range(0, WORKERS, AT_A_TIME):
        active = workers[first : first + AT_A_TIME]
        for worker in active:
            worker.stdin.write("go\n")
            worker.stdin.flush()
        print(*(worker.stdout.readline().strip() for worker in active))
print(f"{time.monotonic() - start:.1f} s at work", file=sys.stderr)
for worker in workers:
    worker.stdin.close()
    worker.wait()
