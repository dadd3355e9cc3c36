"""Answers as tables of pandas, polars and Arrow."""

from __future__ import annotations

import importlib
import mmap
from collections.abc import Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any

from . import _html

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from matplotlib.axes import Axes

    from .store import Runs

#: Rows that a notebook shows of an answer.
SHOWN = 20


def package(name: str, extra: str) -> Any:
    """A package that only some need; the error says how to install it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"{name} is not installed; pip install 'commq[{extra}]' brings it") from error


class Result:
    """The rows of an answer.

    They are an Arrow stream in memory, as the command wrote it. :meth:`arrow` reads it in place; :meth:`pl` and
    :meth:`df` copy only the columns whose form differs. Anything that takes Arrow's PyCapsule interface takes a result.
    """

    def __init__(
        self,
        stream: IO[bytes],
        notes: list[str],
        runs: Runs | None = None,
        query: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        with stream:
            self._bytes = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        #: What the command noted: times left out, ranks that shared cores, and the like.
        self.notes = notes
        #: The query that was asked; None for SQL.
        self.query = query
        self._runs = runs
        self._options = dict(options or {})
        self._table: pa.Table | None = None

    def arrow(self) -> pa.Table:
        """The rows as an Arrow table, without a copy. The metadata of its fields has units and descriptions."""
        if self._table is None:
            pa = package("pyarrow", "arrow")
            ipc = importlib.import_module("pyarrow.ipc")
            self._table = ipc.open_stream(pa.py_buffer(self._bytes)).read_all()
        return self._table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows for polars, DuckDB and others that speak Arrow."""
        return self.arrow().__arrow_c_stream__(requested_schema)

    def df(self) -> pd.DataFrame:
        """The rows as a DataFrame of pandas.

        Whole numbers stay whole: columns of them that have nulls are of the type Int64.
        """
        pandas = package("pandas", "pandas")
        return _frame(_narrow(self.arrow()), pandas)

    def pl(self) -> pl.DataFrame:
        """The rows as a DataFrame of polars."""
        polars = package("polars", "polars")
        try:
            table = self.arrow()
        except ImportError:  # polars reads the stream itself, with a copy
            frame: pl.DataFrame = polars.read_ipc_stream(self._bytes[:])
            return frame
        frame = polars.from_arrow(_narrow(table))
        return frame

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.arrow().column_names)

    @property
    def units(self) -> dict[str, str]:
        """Unit of each column that has one: ns, bytes, bytes/s, elements, or 1 for a plain number."""
        return {name: unit for name, unit in self._metadata("unit").items() if unit}

    @property
    def descriptions(self) -> dict[str, str]:
        """Meaning of each column of a query."""
        return self._metadata("description")

    def _metadata(self, key: str) -> dict[str, str]:
        found = {}
        for field in self.arrow().schema:
            value = (field.metadata or {}).get(key.encode())
            if value is not None:
                found[field.name] = value.decode()
        return found

    def __len__(self) -> int:
        return int(self.arrow().num_rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows, each a dict."""
        for batch in _narrow(self.arrow()).to_batches():
            yield from batch.to_pylist()

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """Draws the rows with matplotlib, as the query says.

        ``ax`` is where; without it a new figure is made, in the look of commq's pictures. ``options`` go to what
        draws: ``imshow``, ``bar`` or ``plot``. Several runs need a picture each: draw them one by one.
        """
        from . import _picture

        return _picture.draw(self, ax, options)

    def picture(self, format: str = "png") -> Picture:
        """The picture that ``commq query --plot`` draws: png, svg or pdf. It asks the query once more."""
        if self._runs is None or self.query is None:
            raise TypeError("only answers of queries have pictures; draw this one with df().plot()")
        return Picture(self._runs.draw(self.query, format, **self._options), format)

    def __repr__(self) -> str:
        what = self.query or "sql"
        try:
            return f"<commq.Result {what}: {len(self)} rows of {', '.join(self.columns)}>"
        except ImportError:
            return f"<commq.Result {what}>"

    def _repr_html_(self) -> str | None:
        try:
            table = self.arrow()
        except ImportError:
            return None
        rows = [list(row.values()) for row in _narrow(table.slice(0, SHOWN)).to_pylist()]
        descriptions, units = self.descriptions, self.units
        titles = [
            descriptions.get(name, "") + (f" In {units[name]}." if units.get(name, "1") != "1" else "")
            for name in table.column_names
        ]
        below = [] if table.num_rows <= SHOWN else [f"The first {SHOWN} of {table.num_rows:,} rows."]
        return _html.table(table.column_names, rows, titles) + "".join(map(_html.paragraph, below + self.notes))


class Picture:
    """A picture that commq drew, which a notebook shows."""

    def __init__(self, data: bytes, format: str) -> None:
        #: The bytes of the file.
        self.data = data
        #: png, svg or pdf.
        self.format = format

    def save(self, path: str) -> None:
        """Writes the file."""
        with open(path, "wb") as f:
            f.write(self.data)

    def __repr__(self) -> str:
        return f"<commq.Picture {self.format}, {len(self.data)} bytes>"

    def _repr_png_(self) -> bytes | None:
        return self.data if self.format == "png" else None

    def _repr_svg_(self) -> str | None:
        return self.data.decode() if self.format == "svg" else None


def _narrow(table: pa.Table) -> pa.Table:
    """Sums of integers, which have 128 bits in SQL, with 64 where all their values fit."""
    pa = package("pyarrow", "arrow")
    for i, field in enumerate(table.schema):
        if pa.types.is_decimal(field.type) and field.type.scale == 0:
            try:
                column = table.column(i).cast(pa.int64())
            except pa.ArrowInvalid:
                continue
            table = table.set_column(i, field.with_type(pa.int64()), column)
    return table


def _frame(table: pa.Table, pandas: Any) -> pd.DataFrame:
    """A DataFrame in which whole numbers stay whole."""
    pa = package("pyarrow", "arrow")
    frame: pd.DataFrame = table.to_pandas()
    whole = {pa.int32(): pandas.Int32Dtype(), pa.int64(): pandas.Int64Dtype()}
    for i, field in enumerate(table.schema):
        column = table.column(i)
        if field.type in whole and column.null_count:
            frame.isetitem(i, column.to_pandas(types_mapper=whole.get))
    return frame


__all__ = ["Picture", "Result"]
