"""Draws answers with matplotlib, in the look of the pictures that commq draws."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from .result import Result


@dataclass(frozen=True)
class Picture:
    """How an answer is drawn: the field plot of a query's header, with the names of its columns."""

    kind: str
    title: str
    row: str = ""
    column: str = ""
    value: str = ""
    x: str = ""
    ys: list[str] = field(default_factory=list)
    series: str = ""
    fit: str = ""
    shared_y: str = ""
    log_x: bool = False
    log_y: bool = False
    limits: tuple[float, float] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    axes: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)


#: The units that quantities are drawn in, largest first.
UNITS = {
    "ns": [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")],
    "bytes": [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")],
    "bytes/s": [(1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")],
}

#: Matrices are coloured by the logarithm where the greatest value is more than so many times the least.
LOGARITHMIC = 100

#: Bars that are drawn at most: beyond them the smallest are left out.
BARS = 40


def style() -> str:
    """The style sheet of the pictures, for ``matplotlib.pyplot.style.use(commq.style())``."""
    return os.fspath(Path(__file__).parent / "commq.mplstyle")


def draw(result: Result, ax: Axes | None, options: Mapping[str, Any]) -> Axes:
    """Draws an answer into axes, by default new ones."""
    from ._queries import PICTURES
    from .result import package

    plt = package("matplotlib.pyplot", "plot")
    picture = PICTURES.get((result.query or "").replace("_", "-"))
    if picture is None:
        raise TypeError(
            f"{result.query or 'SQL'} does not say how it is drawn; "
            "use df().plot(), or picture() for a query of your own"
        )
    if result._runs is not None and len(result._runs) > 1 and picture.kind != "points":
        raise ValueError("an answer about several runs needs a picture for each: ask and draw them one by one")
    drawer = _Drawer(result, picture, options, ax is None)
    if ax is not None:
        drawer.draw(ax)
        return ax
    with plt.style.context(style()):
        size = {"matrix": (4.5, 3.6), "timeline": (8, 5)}.get(picture.kind)
        _, new = plt.subplots(figsize=size)
        drawer.draw(new)
    made: Axes = new
    return made


class _Drawer:
    """One answer, and how it is drawn."""

    def __init__(self, result: Result, picture: Picture, options: Mapping[str, Any], resize: bool) -> None:
        self.result = result
        #: Whether the figure may become higher, for many bars.
        self.resize = resize
        self.picture = picture
        self.options = dict(options)
        given = {name.replace("_", "-"): str(v) for name, v in result._options.items() if v is not None}
        self.arguments = {**picture.defaults, **given}

    def draw(self, ax: Axes) -> None:
        """Draws by the kind of the picture."""
        names = self.result._runs.names if self.result._runs is not None else []
        ax.set_title(f"{self.fill(self.picture.title)}: {', '.join(names)}")
        if not len(self.result):
            ax.text(0.5, 0.5, "nothing to draw", ha="center", va="center", transform=ax.transAxes)
            ax.set_axis_off()
            return
        {
            "matrix": self.matrix,
            "bars": self.bars,
            "grouped": self.grouped,
            "histogram": self.grouped,
            "lines": self.lines,
            "points": self.points,
            "timeline": self.timeline,
        }[self.picture.kind](ax)

    def fill(self, text: str) -> str:
        """A text with the values of parameters, in words."""
        for name, value in self.arguments.items():
            text = text.replace("{" + name + "}", value.replace("-", " "))
        return text

    def label(self, column: str) -> str:
        """What a column is called on an axis."""
        if column in self.picture.axes:
            return self.arguments[self.picture.axes[column]].replace("-", " ")
        words = self.fill(self.picture.labels.get(column, column.replace("_", " ")))
        return {"src": "source rank", "dst": "destination rank"}.get(words, words)

    def scale(self, column: str, largest: float) -> tuple[float, str]:
        """The unit that a column is drawn in: its size, and the label of the axis with its name."""
        label = self.picture.shared_y if self.picture.shared_y and column in self.picture.ys else self.label(column)
        for size, name in UNITS.get(self.result.units.get(column, ""), []):
            if abs(largest) >= size:
                return size, f"{self.fill(label)} [{name}]"
        return 1.0, self.fill(label)

    def matrix(self, ax: Axes) -> None:
        """Rows down, columns across, darker is more."""
        import matplotlib.pyplot as plt
        import numpy as np
        from matplotlib.ticker import MaxNLocator

        p, frame = self.picture, self.result.df()
        ranks = self.result._runs.ranks if self.result._runs is not None and hasattr(self.result._runs, "ranks") else 0
        ranks = max([ranks, *(int(frame[c].max()) + 1 for c in (p.row, p.column))])
        values = np.full((ranks, ranks), np.nan)
        values[frame[p.row].to_numpy(int), frame[p.column].to_numpy(int)] = frame[p.value].to_numpy(float)
        size, label = self.scale(p.value, float(np.nanmax(values)))
        values = np.where(values == 0, np.nan, values) / size
        wide = np.nanmax(values, initial=0) > LOGARITHMIC * np.nanmin(values, initial=np.inf)
        image = ax.imshow(values, **({"norm": "log"} if wide else {"vmin": 0}) | self.options)
        ax.grid(False)
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        ax.set(xlabel=self.label(p.column), ylabel=self.label(p.row))
        plt.colorbar(image, ax=ax, label=label, fraction=0.046, pad=0.04)

    def table(self) -> tuple[pd.DataFrame, float, str]:
        """Values by x (rows) and series (columns), the size of their unit, and the label of the axis."""
        p, frame = self.picture, self.result.df()
        key = self._names(frame)
        if len(p.ys) == 1 and p.series and p.kind != "histogram":
            series = frame[p.series].map(self._series)
            table = frame.assign(_x=key, _s=series).pivot_table(
                index="_x", columns="_s", values=p.ys[0], aggfunc="sum", sort=False, observed=True
            )
        else:
            table = frame.assign(_x=key).groupby("_x", sort=False)[p.ys].sum()
            table.columns = [self.label(y) for y in p.ys]
        table = table.astype(float).fillna(0)
        if p.x == "rank":
            table = table.sort_index()
        if table.to_numpy().any():
            table = table.loc[:, table.any()]
            if p.x == "callsite":
                table = table[table.any(axis=1)]
        total = table.sum(axis=1) if p.kind == "bars" else table.max(axis=1)
        size, label = self.scale(p.ys[0], float(total.max()))
        return table / size, size, label

    def _series(self, value: Any) -> str:
        """What a value of the series' column is called in the legend."""
        if isinstance(value, bool):
            return self.label(self.picture.series) + (": yes" if value else ": no")
        return str(value)

    def _names(self, frame: pd.DataFrame) -> pd.Series[Any]:
        """Names in place of the numbers of call sites, communicators and datatypes.

        Where a name stands for several numbers, all but the first have theirs behind it.
        """
        x = frame[self.picture.x]
        if self.picture.x not in ("callsite", "comm", "datatype"):
            return x
        of = _site if self.picture.x == "callsite" else _named
        number: dict[str, Any] = {}
        names = []
        for row in frame.to_dict("records"):
            words = of({str(key): value for key, value in row.items()})
            own = row[self.picture.x]
            names.append(words if words and number.setdefault(words, own) == own else f"{words} #{own}".strip())
        named: pd.Series[Any] = x.astype(object).copy()
        named[:] = names
        return named

    def bars(self, ax: Axes) -> None:
        """Bars, stacked by series."""
        import matplotlib.pyplot as plt

        table, _, label = self.table()
        shown = table if self.picture.x == "rank" else table.head(BARS)
        across = shown.index.dtype.kind in "if" or shown.index.astype(str).str.len().max() < 12
        if across:
            shown.plot.bar(ax=ax, stacked=True, rot=0 if len(shown) < 25 else 90, width=0.8, **self.options)
            ax.set(xlabel=self.label(self.picture.x), ylabel=label)
        else:
            if self.resize:
                plt.gcf().set_size_inches(8, max(3.2, 0.8 + 0.22 * len(shown)))
            shown[::-1].plot.barh(ax=ax, stacked=True, width=0.8, **self.options)
            ax.set(ylabel=self.label(self.picture.x), xlabel=label)
        ax.grid(True, axis="y" if across else "x")
        ax.grid(False, axis="x" if across else "y")
        if self.picture.limits and across:
            ax.set_ylim(*self.picture.limits)
        self.legend(ax, len(table.columns))

    def grouped(self, ax: Axes) -> None:
        """Bars side by side."""
        table, _, label = self.table()
        table.plot.bar(ax=ax, rot=0 if len(table) < 12 else 45, width=0.9, **self.options)
        ax.grid(False, axis="x")
        ax.set(xlabel=self.label(self.picture.x), ylabel=label)
        if self.picture.log_y:
            ax.set_yscale("log")
        self.legend(ax, len(table.columns))

    def legend(self, ax: Axes, series: int) -> None:
        """A legend beside the bars, if there is something to tell apart."""
        if series > 1:
            ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
        elif (old := ax.get_legend()) is not None:
            old.remove()

    def lines(self, ax: Axes) -> None:
        """A line for each series."""
        self._curves(ax, ".-")

    def points(self, ax: Axes) -> None:
        """Points for each series, with the fitted curve."""
        self._curves(ax, "o")

    def _curves(self, ax: Axes, marker: str) -> None:
        import numpy as np

        p, frame = self.picture, self.result.df()
        frame = frame.astype({name: float for name in [p.x, *p.ys, *([p.fit] if p.fit else [])]})
        x_size, x_label = self.scale(p.x, float(frame[p.x].to_numpy().max()))
        size, label = self.scale(p.ys[0], float(np.nanmax([0, *frame[p.ys].to_numpy().flat])))
        groups = frame.groupby(p.series, sort=False) if p.series else [("", frame)]
        number = 0
        for name, rows in groups:
            rows = rows.sort_values(p.x)
            for y in p.ys:
                words = [self._series(name)] if p.series else []
                words += [self.label(y)] if len(p.ys) > 1 else []
                x = rows[p.x] / x_size
                ax.plot(x, rows[y] / size, marker, label=", ".join(words), **self.options)
                if p.fit:
                    ax.plot(x, rows[p.fit] / size, "--", color=ax.lines[-1].get_color())
                number += 1
        ax.set(xlabel=x_label, ylabel=label)
        if p.log_x:
            ax.set_xscale("log")
        if p.log_y:
            ax.set_yscale("log")
        self.legend(ax, number)

    def timeline(self, ax: Axes) -> None:
        """The picture that commq draws."""
        import matplotlib.pyplot as plt

        image = plt.imread(io.BytesIO(self.result.picture("png").data), format="png")
        ax.imshow(image, **self.options)
        ax.set_axis_off()
        ax.set_title("")


def _site(row: Mapping[str, Any]) -> str:
    """A call site in a few words: function, file and line, or the place in the module."""
    words = [row["function"]] if isinstance(row.get("function"), str) else []
    if isinstance(row.get("file"), str):
        words.append(f"{os.path.basename(row['file'])}:{row['line']}")
    elif isinstance(row.get("module"), str):
        words.append(os.path.basename(row["module"]))
    return " ".join(words)


def _named(row: Mapping[str, Any]) -> str:
    """A communicator or datatype by its name, or by its kind and number."""
    if isinstance(row.get("name"), str) and row["name"]:
        return str(row["name"])
    for column in ("kind", "combiner"):
        if isinstance(row.get(column), str):
            return f"{row[column]} {row.get('comm', row.get('datatype', ''))}"
    return ""
