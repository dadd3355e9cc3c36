"""The version of the wheel: that of the command in it, $COMMQ_BINARY, else of the source."""

import os
import pathlib
import re
import subprocess


def version() -> str:
    """The version in Python's spelling, 0.1.0.dev0 for 0.1.0-dev."""
    binary = os.environ.get("COMMQ_BINARY")
    if binary:
        said = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout
        found = re.search(r"version v?(\S+)", said)
    else:
        source = pathlib.Path(__file__).parent.parent / "internal" / "about" / "about.go"
        found = re.search(r'^\s*version = "(.*)"', source.read_text(), re.MULTILINE)
    if not found:
        raise SystemExit("no version of commq found")
    return re.sub(r"-dev$", ".dev0", found.group(1))


__version__ = version()
