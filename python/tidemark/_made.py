"""Synthetic references: the same everywhere, for the same seed."""

from __future__ import annotations

from tidemark import _tidemark
from tidemark._columns import U64


def generate(
    pattern: str,
    references: int = 1_000_000,
    *,
    pages: int | None = None,
    seed: int = 1,
    exponent: float = 1.0,
    phases: int = 10,
    localities: int = 10,
    deviation: int = 5,
    overlap: int = 0,
    holding: int = 250,
    micromodel: str = "random",
) -> U64:
    """Generates synthetic page numbers, one a reference: to be analysed as they are, or written.

    `pattern` is one of:

    - `sequential`, `reverse`: one page after the other, none twice.
    - `loop`, `sweep`: `pages` in order, over and over; or forward and backward.
    - `random`, `skewed`: `pages`, each as likely as the other; or low numbers more often.
    - `zipf`: `pages` by Zipf's law with this `exponent` (to a thousandth), in shuffled order.
    - `phased`: sets of `pages`, one after the other, `phases` of them.
    - `localities`: the phase-transition model of Denning and Kahn. The program dwells in one of
      so many `localities` of `pages` pages (mean, with this standard `deviation`; `overlap` pages
      are in all) for `holding` references on average, picking pages by the `micromodel`: `random`,
      `cyclic` or `sawtooth`.

    `pages` is 1000 unless given, and 30 for `localities`.

    Returns an array of so many `references` page numbers (`uint64`), the same for the same `seed`.

    Raises `ValueError` if there is no such pattern or a number is out of its range.
    """
    _check("references", references)
    _check("seed", seed)
    usual = 30 if pattern == "localities" else 1000
    numbers = {"localities": localities, "deviation": deviation}
    numbers |= {"overlap": overlap, "holding": holding}
    for name, value in {
        "pages": usual if pages is None else pages,
        "phases": phases,
        **numbers,
    }.items():
        _check(name, value)
    return _tidemark.generate_pattern(
        pattern,
        references,
        seed,
        usual if pages is None else pages,
        exponent,
        phases,
        (localities, deviation, overlap, holding),
        micromodel,
    )


def golden(name: str) -> tuple[U64, int]:
    """Makes a trace with published miss counts, and tells the size in pages those are for.

    `name` is `loop`, `scanhot`, `skew`, `phase`, `sheep` or `mixed`.

    Returns the page number of each reference (`uint64`), and that size.

    Raises `ValueError` if there is no such trace.
    """
    return _tidemark.generate_golden(name)


def _check(name: str, value: int) -> None:
    if not 0 <= value < 2**64:
        raise ValueError(f"`{name}` is {value}; needs a whole number from 0")
