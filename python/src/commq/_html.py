"""Tables and lists as HTML, for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def table(heads: Sequence[str], rows: Iterable[Sequence[object]], titles: Sequence[str] = ()) -> str:
    """A table; titles are shown when the mouse is over a head."""
    tips = list(titles) + [""] * (len(heads) - len(titles))
    head = "".join(
        f'<th title="{escape(tip)}">{escape(name)}</th>' if tip else f"<th>{escape(name)}</th>"
        for name, tip in zip(heads, tips)
    )
    body = "".join("<tr>" + "".join(_cell(value) for value in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    text = show(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f'<td style="text-align: right">{text}</td>'
    return f'<td style="text-align: left">{escape(text)}</td>'


def show(value: object) -> str:
    """A value for people: whole numbers in groups of three, nothing for null."""
    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


def paragraph(text: str) -> str:
    """A small paragraph of plain text."""
    return f"<p><small>{escape(text)}</small></p>"


_TIMES = [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")]
_SIZES = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")]


def time(ns: float) -> str:
    """A time with the unit that fits."""
    return _scaled(ns, _TIMES)


def size(count: float) -> str:
    """A size with the unit that fits; 1 kB is 1000 bytes."""
    return _scaled(count, _SIZES)


def _scaled(value: float, units: list[tuple[float, str]]) -> str:
    for factor, name in units:
        if abs(value) >= factor:
            return f"{value / factor:.3g} {name}"
    return f"{value:.3g} {units[-1][1]}"
