"""The compiled half of the package. Nothing here is for users: its arguments are checked before."""

from typing import Any, final

from tidemark._columns import F64, U8, U32, U64

__all__ = [
    "Columns",
    "Engine",
    "References",
    "Region",
    "Summary",
    "__version__",
    "check_sweep",
    "count_faults",
    "count_misses",
    "describe_policies",
    "describe_systems",
    "estimate_misses",
    "find_knee",
    "find_phases",
    "follow",
    "generate_golden",
    "generate_pattern",
    "load",
    "need_fixed",
    "need_variable",
    "number",
    "parse_size",
    "read",
    "read_sweep",
    "replay",
    "restore",
    "summarize",
    "sweep_rows",
    "trace_bytes",
    "write",
    "write_sweep",
]
__version__: str

@final
class Summary:
    @property
    def page_bytes(self) -> int: ...
    @property
    def granularity(self) -> str: ...
    @property
    def granularity_length(self) -> int | None: ...
    @property
    def time_unit(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def command(self) -> list[str]: ...
    @property
    def records(self) -> int: ...
    @property
    def events(self) -> int: ...
    @property
    def processes(self) -> int: ...
    @property
    def blocks(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def cut_at(self) -> int | None: ...

@final
class Columns:
    @property
    def page(self) -> U64: ...
    @property
    def kinds(self) -> U8: ...
    @property
    def time(self) -> U64: ...
    @property
    def block_process(self) -> U32: ...
    @property
    def block_records(self) -> U64: ...
    @property
    def summary(self) -> Summary: ...
    def events(self) -> tuple[U64, U32, U64, list[str], list[dict[str, Any]]]: ...

@final
class References:
    @property
    def page(self) -> U32: ...
    @property
    def time(self) -> U64 | None: ...
    @property
    def page_count(self) -> int: ...
    @property
    def page_bytes(self) -> int: ...
    @property
    def granularity(self) -> str: ...
    @property
    def granularity_length(self) -> int | None: ...
    @property
    def time_unit(self) -> str: ...
    @property
    def duration(self) -> int: ...
    def names(self) -> tuple[U32, U64]: ...
    def lives(self) -> tuple[U32, U64, U32]: ...

def summarize(path: str) -> Summary: ...
def read(path: str) -> Columns: ...
def write(
    path: str,
    page: U64,
    kinds: U8 | None,
    time: U64 | None,
    page_bytes: int,
    time_unit: str,
    source: str,
    command: list[str],
) -> int: ...
def load(path: str, columns: Columns | None, processes: list[int] | None) -> References: ...
def restore(
    page: U32,
    time: U64 | None,
    names: tuple[U32, U64],
    lives: tuple[U32, U64, U32],
    page_bytes: int,
    granularity: tuple[str, int | None],
    time_unit: str,
) -> References: ...
def number(page: U32 | U64, time: U64 | None, page_bytes: int, time_unit: str) -> References: ...
def count_misses(
    references: References,
    policy: str,
    sizes: U64 | None,
    seed: int,
    knobs: dict[str, int],
    eyes: str,
) -> tuple[U64, U64]: ...
def estimate_misses(
    references: References,
    rate: float | None,
    pages: int | None,
    sizes: U64 | None,
    seed: int,
) -> tuple[U64, U64, F64]: ...
def count_faults(
    references: References, policy: str, sizes: U64 | None, windows: U64 | None
) -> tuple[U64, U64, F64]: ...
def describe_policies() -> list[tuple[str, str, str, list[tuple[str, str, int, int, int]]]]: ...
def describe_systems() -> list[tuple[str, str, str]]: ...
def replay(
    paths: list[str], pages: list[int], shares: list[float], machine: dict[str, Any]
) -> str: ...
def check_sweep(policies: list[str], memory: list[str]) -> None: ...
def sweep_rows(trace: str, policy: str, memory: list[str]) -> str: ...
def trace_bytes(trace: str) -> int: ...
def read_sweep(name: str, text: str) -> str: ...
def write_sweep(record: str, is_json: bool) -> str: ...
def follow(
    references: References, policy: str, windows: list[int], pieces: int
) -> list[tuple[U64, U64, U64, F64, U64, U64, tuple[float, float, int]]]: ...
def find_knee(duration: int, pages: F64, misses: U64) -> tuple[float, float] | None: ...
def need_variable(
    references: References,
    policy: str,
    slow_down_max: float,
    page_in_ns: float,
    time_unit_ns: float,
) -> tuple[float, int, int | None, int, float, bool]: ...
def need_fixed(
    references: References,
    pages: U64,
    misses: U64,
    slow_down_max: float,
    page_in_ns: float,
    time_unit_ns: float,
) -> tuple[float, int, int | None, int, float, bool] | None: ...
def find_phases(
    references: References, pages_max: int, duration_min: int | None
) -> tuple[U32, U32, U64, U64, U32, U32, U32, U32]: ...
def generate_pattern(
    pattern: str,
    references: int,
    seed: int,
    pages: int,
    exponent: float,
    phases: int,
    localities: tuple[int, int, int, int],
    micromodel: str,
) -> U64: ...
def generate_golden(name: str) -> tuple[U64, int]: ...
@final
class Engine:
    def __new__(cls, memory: int, policy: str, swap_folder: str, swap: int) -> Engine: ...
    def zeros(self, bytes: int) -> Region: ...
    @property
    def memory(self) -> int: ...
    def statistics(self) -> list[tuple[str, int]]: ...

@final
class Region:
    @property
    def address(self) -> int: ...
    def advise(self, start: int, end: int, advice: str) -> None: ...
    def prefetch(self, start: int, end: int) -> None: ...

def parse_size(name: str, text: str) -> int: ...
