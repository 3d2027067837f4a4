"""`python -m cma.schemas`: write the schemas, or say with `--check` which are not up to date.

Exit status: 0 written or up to date, 1 some are not up to date, 2 a wrong request.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from cma.schemas.making import MODELS, outdated, place, schema_of, written_form


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m cma.schemas",
        description="Write the JSON Schemas of every format of the library, beside this module.",
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing, name those not current"
    )
    options = parser.parse_args(arguments)
    old = outdated()
    for name in old:
        if not options.check and name in MODELS:
            place(name).parent.mkdir(parents=True, exist_ok=True)
            place(name).write_text(written_form(schema_of(name)), encoding="utf-8")
        elif not options.check:
            place(name).unlink()
        sys.stdout.write(f"{'not up to date' if options.check else 'written'}: {name}\n")
    sys.stdout.write(f"{len(MODELS)} schemas, {len(old)} of them not up to date\n")
    return 1 if options.check and old else 0


if __name__ == "__main__":
    sys.exit(main())
