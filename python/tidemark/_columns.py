"""The base of all results: columns of one length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow

U8: TypeAlias = NDArray[np.uint8]
U32: TypeAlias = NDArray[np.uint32]
U64: TypeAlias = NDArray[np.uint64]
F64: TypeAlias = NDArray[np.float64]


REPR_ITEMS_MAX = 8
"""The most items of a tuple that are shown one by one."""


class Table:
    """Columns of one length, under their names.

    `pandas.DataFrame(table.columns)` and `polars.DataFrame(table.columns)` take them as they are.
    """

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """The columns by name, in order. They are the arrays themselves, not copies."""
        raise NotImplementedError

    def __setstate__(self, state: dict[str, Any]) -> None:
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
        self.__dict__.update(state)

    def __repr__(self) -> str:
        shown = (field.name for field in fields(cast(Any, self)) if field.repr)
        told = ", ".join(f"{name}={_shortened(getattr(self, name))}" for name in shown)
        return f"{type(self).__name__}({told})"

    def to_arrow(self) -> pyarrow.Table:
        """The columns as a `pyarrow.Table` over the same memory. Needs the package `pyarrow`."""
        import pyarrow

        return pyarrow.table({name: pyarrow.array(values) for name, values in self.columns.items()})


def counts(name: str, values: Any) -> U64:
    """`values` as a column of whole numbers from 0, copied only where the type differs."""
    given = np.asarray(values)
    if given.ndim != 1:
        raise ValueError(f"`{name}` has {given.ndim} dimensions; needs 1")
    if given.size and given.dtype.kind not in "ui":
        raise ValueError(f"`{name}` holds {given.dtype}; needs whole numbers")
    if given.dtype.kind == "i" and given.size and int(given.min()) < 0:
        raise ValueError(f"`{name}` has {int(given.min())}; needs numbers from 0")
    return np.ascontiguousarray(given, dtype=np.uint64)


def _shortened(value: Any) -> str:
    """`value` in a few words: of a column its length and its type, of a mapping its names."""
    if isinstance(value, np.ndarray):
        return f"<{len(value)} {value.dtype}>"
    if isinstance(value, Mapping):
        return f"<{', '.join(map(str, value))}>"
    if isinstance(value, tuple) and len(value) > REPR_ITEMS_MAX:
        return f"<{len(value)} {type(value[0]).__name__}>"
    return repr(value)
