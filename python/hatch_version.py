"""The version of the wheel: $COMMQ_VERSION, which scripts/release puts into the command, else that of the source."""

import os
import pathlib
import re

SOURCE = pathlib.Path(__file__).parent.parent / "internal" / "about" / "about.go"


def version() -> str:
    """The version in Python's spelling: 0.1.0.dev0 for 0.1.0-dev."""
    found = re.search(r'^\s*version = "(.*)"', SOURCE.read_text(), re.MULTILINE)
    given = os.environ.get("COMMQ_VERSION") or (found and found.group(1))
    if not given:
        raise SystemExit(f"no version in {SOURCE}")
    return re.sub(r"-dev$", ".dev0", given.removeprefix("v"))


__version__ = version()
