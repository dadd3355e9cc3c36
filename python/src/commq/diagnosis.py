"""Why a run is slow: the findings of commq diagnose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, overload

from . import _html


class Finding:
    """A cause of lost time, and what mending it would gain.

    ``finding["parts"]`` and the like are the keys of ``commq diagnose --format json``.
    """

    def __init__(self, found: dict[str, Any], time_ns: int) -> None:
        self._found = found
        self._time_ns = time_ns

    def __getitem__(self, key: str) -> Any:
        return self._found[key]

    @property
    def rule(self) -> str:
        """Name of the rule that found it."""
        return str(self._found["rule"])

    @property
    def title(self) -> str:
        """What was found, in one sentence."""
        return str(self._found["title"])

    @property
    def advice(self) -> str:
        """What to do about it."""
        return str(self._found["advice"])

    @property
    def gain_ns(self) -> int:
        """What the run would gain without the cause, in ns; see ``bound``."""
        return int(self._found["gain_ns"])

    @property
    def gain_share(self) -> float:
        """The gain as a part of the run's time."""
        return self.gain_ns / self._time_ns if self._time_ns else 0.0

    @property
    def bound(self) -> bool:
        """True if the gain is not simulated, but the most that it can be."""
        return bool(self._found["bound"])

    @property
    def ranks(self) -> list[int]:
        """Ranks that cause it."""
        return list(self._found["ranks"])

    @property
    def callsite(self) -> str:
        """Place in the source, or in the module."""
        return str(self._found["callsite"])

    def __repr__(self) -> str:
        return f"<commq.Finding {self.rule}: {self._gain()}: {self.title}>"

    def _gain(self) -> str:
        return f"gain {'at most ' if self.bound else ''}{_html.time(self.gain_ns)} ({self.gain_share:.1%})"

    def _repr_html_(self) -> str:
        return (
            f"<p><b>{escape(self.rule)}</b>: {escape(self._gain())}<br>{escape(self.title)}.<br>"
            f"<i>{escape(self.advice)}</i></p>"
        )


class Diagnosis(Sequence[Finding]):
    """What limits a run: its findings, the one with the largest gain first.

    ``diagnosis["efficiency"]`` and the like are the keys of ``commq diagnose --format json``.
    """

    def __init__(self, found: dict[str, Any]) -> None:
        self._found = found
        self._findings = [Finding(f, found["time_ns"]) for f in found["findings"]]

    @overload
    def __getitem__(self, key: int) -> Finding: ...
    @overload
    def __getitem__(self, key: slice) -> list[Finding]: ...
    @overload
    def __getitem__(self, key: str) -> Any: ...
    def __getitem__(self, key: int | slice | str) -> Any:
        return self._found[key] if isinstance(key, str) else self._findings[key]

    def __len__(self) -> int:
        return len(self._findings)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._findings)

    @property
    def efficiency(self) -> dict[str, float | None]:
        """Parallel efficiency and its factors, parts of 1; empty for a program that takes no time.
        ``transfer`` is None if no network was simulated."""
        return dict(self._found.get("efficiency") or {})

    @property
    def warnings(self) -> list[str]:
        """What makes these numbers doubtful."""
        return list(self._found["warnings"])

    def _head(self) -> str:
        found = self._found
        head = f"{found['run']}: {_html.time(found['time_ns'])} of {found['ranks']} ranks"
        if self.efficiency:
            parts = [f"{name.replace('_', ' ')} {'not known' if value is None else f'{value:.1%}'}"
                     for name, value in self.efficiency.items()]
            head += "; " + ", ".join(parts)
        return head

    def __repr__(self) -> str:
        return f"<commq.Diagnosis {self._head()}; {len(self)} findings>"

    def _repr_html_(self) -> str:
        rows = [[f.rule, f._gain(), f.title, f.advice] for f in self if f.gain_ns > 0]
        table = _html.table(["rule", "gain", "what", "advice"], rows) if rows else "<p>No findings.</p>"
        warnings = "".join(map(_html.paragraph, self.warnings))
        return f"<p>{escape(self._head())}</p>{table}{warnings}"
