"""A kept input once more: `python -m experiments.fuzzing.replay TARGET FILE`.

Ends with the error's traceback where the fault is still there, and says so where it is not.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from experiments.fuzzing.targets import BY_NAME


def main(arguments: list[str]) -> int:
    """Read the file as the target does; return 0 where it is accepted or refused as promised."""
    if len(arguments) != 2 or arguments[0] not in BY_NAME:
        sys.stderr.write(f"{__doc__}\nTargets: {', '.join(BY_NAME)}\n")
        return 2
    target, data = BY_NAME[arguments[0]], Path(arguments[1]).read_bytes()
    with tempfile.TemporaryDirectory() as folder, target.opened(Path(folder)) as read:
        try:
            read(data)
        except target.refusals as refusal:
            sys.stdout.write(f"refused as promised: {refusal}\n")
            return 0
    sys.stdout.write("accepted\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
