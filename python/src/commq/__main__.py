"""``python -m commq`` is the command commq."""

from __future__ import annotations

import os
import sys

from ._command import command
from .errors import CommandNotFound


def main() -> None:
    """Becomes the command."""
    try:
        path = command()
    except CommandNotFound as error:
        sys.exit(f"commq: {error}")
    os.execv(path, ["commq", *sys.argv[1:]])


if __name__ == "__main__":
    main()
