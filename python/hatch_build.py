"""Puts the command into the wheel, as a script that pip installs into the folder of commands."""

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CommandHook(BuildHookInterface[Any]):
    """Reads $COMMQ_BINARY, the command, and $COMMQ_PLATFORM, the platform tag of the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """An editable install (pip install -e) has no command: it finds one in $PATH."""
        if version == "editable":
            return
        binary = os.environ.get("COMMQ_BINARY")
        platform = os.environ.get("COMMQ_PLATFORM")
        if not binary or not platform:
            raise SystemExit("a wheel needs the command; scripts/wheel builds one")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
        build_data["shared_scripts"][os.path.abspath(binary)] = "commq"
