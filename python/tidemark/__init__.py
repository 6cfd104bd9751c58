"""Page reference traces, and what memory the programs behind them need, as numpy columns.

>>> import tidemark
>>> pages = tidemark.generate("zipf", 100_000, pages=1000)
>>> curves = tidemark.curve(pages, ["lru", "opt"])
>>> int(curves["lru"].at(100)) > int(curves["opt"].at(100))
True

- `read` gives the records of a trace file as columns, `info` what it says of itself; `write` makes
  one.
- `load` prepares a file, a trace or an array for analysis. Everything below takes any of these,
  and what `load` gives: that spares the work where several questions are asked.
- `curve` counts misses for each size of memory, `working_set` follows the resident pages over time,
  `phases` finds phases, `needed` says how much memory is needed.
- `sweep` counts many traces by many policies in many sizes of memory, on any executor.
- `record` makes a trace of a real program, by the installed command `tidemark`.
- `replay` runs recorded programs on whole memory systems, which `systems` lists; `compare` sets such
  a prediction beside what the program does live, by the installed command.
- `generate` and `golden` make synthetic references; `policies` lists the page replacement policies.
- `memory_limit`, `zeros`, `open`, `from_store` and `Engine` make arrays that are larger than the
  memory they may use: of zeros, or of what a file or a server has, which `flush` writes to it.

Sizes are in pages, those of arrays in bytes. Times are *virtual*: in instructions, references or nanoseconds of the process,
whichever the trace counts. Columns are read-only arrays that own their memory; nothing is copied
on the way into Python. What takes time runs on every processor and lets other Python threads run.
A file that can't be used is a `ValueError` or an `OSError` with one line that says why.
"""

from tidemark._analyses import (
    Need,
    Phases,
    Residence,
    needed,
    phases,
    working_set,
)
from tidemark._columns import Table
from tidemark._commands import Batch, Comparison, Recording, batch, compare, record
from tidemark._curves import Curve, Curves, Knee, Knob, Policy, curve, policies
from tidemark._made import generate, golden
from tidemark._references import References, Source, load
from tidemark._regions import (
    Engine,
    Statistics,
    advise,
    empty,
    flush,
    from_store,
    memory_limit,
    prefetch,
    zeros,
)

# Not in `__all__`: with `import *` it would take the place of Python's own.
from tidemark._regions import open as open
from tidemark._replays import Replays, System, replay, systems
from tidemark._sweeps import Sweep, sweep
from tidemark._tidemark import __version__
from tidemark._traces import Events, Info, Kinds, Trace, info, read, write

__all__ = [
    "Batch",
    "Comparison",
    "Curve",
    "Curves",
    "Engine",
    "Events",
    "Info",
    "Kinds",
    "Knee",
    "Knob",
    "Need",
    "Phases",
    "Policy",
    "Recording",
    "References",
    "Replays",
    "Residence",
    "Source",
    "Statistics",
    "Sweep",
    "System",
    "Table",
    "Trace",
    "__version__",
    "advise",
    "batch",
    "compare",
    "curve",
    "empty",
    "flush",
    "from_store",
    "generate",
    "golden",
    "info",
    "load",
    "memory_limit",
    "needed",
    "phases",
    "policies",
    "prefetch",
    "read",
    "record",
    "replay",
    "sweep",
    "systems",
    "working_set",
    "write",
    "zeros",
]
