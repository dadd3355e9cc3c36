"""platform_tag.py BINARY prints the platform tag of a wheel with that command: manylinux_2_34_x86_64 and the like.

auditwheel finds the oldest glibc that has all symbols the command wants. It reads wheels, so it gets one with nothing
but the command in it.
"""

import re
import struct
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

#: Machines of the ELF header, by their number.
MACHINES = {0x3E: "x86_64", 0xB7: "aarch64"}


def machine(binary: Path) -> str:
    """The machine that a command is for."""
    head = binary.open("rb").read(20)
    if head[:4] != b"\x7fELF" or len(head) < 20:
        sys.exit(f"platform_tag: {binary} is no ELF file")
    (number,) = struct.unpack_from("<H", head, 18)
    if number not in MACHINES:
        sys.exit(f"platform_tag: {binary} is for machine {number:#x}; want one of {', '.join(MACHINES.values())}")
    return MACHINES[number]


def platform_tag(binary: Path) -> str:
    """The tag that auditwheel grants."""
    with tempfile.TemporaryDirectory() as folder:
        wheel = Path(folder) / f"commq-0-py3-none-linux_{machine(binary)}.whl"
        with zipfile.ZipFile(wheel, "w") as z:
            z.write(binary, "commq-0.data/scripts/commq")
            z.writestr("commq-0.dist-info/METADATA", "Metadata-Version: 2.1\nName: commq\nVersion: 0\n")
            z.writestr("commq-0.dist-info/WHEEL", f"Wheel-Version: 1.0\nTag: py3-none-linux_{machine(binary)}\n")
            z.writestr("commq-0.dist-info/RECORD", "commq-0.data/scripts/commq,,\n")
        return granted(wheel)


def granted(wheel: Path) -> str:
    """The tag that auditwheel grants a wheel."""
    done = subprocess.run([sys.executable, "-m", "auditwheel", "show", wheel], capture_output=True, text=True)
    found = re.search(r'platform\s+tag:\s+"(\w+)"', done.stdout)
    if not found:
        sys.exit(f"platform_tag: auditwheel show says: {done.stdout}{done.stderr}")
    return found.group(1)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.splitlines()[0])
    print(platform_tag(Path(sys.argv[1])))
