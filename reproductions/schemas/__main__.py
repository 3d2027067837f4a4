"""`python -m reproductions.schemas`: write the schemas, or say with `--check` which are old.

Exit status: 0 written or up to date, 1 some are not up to date, 2 a wrong request.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from reproductions.schemas.making import MODELS, outdated, place, schema_of, written_form


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m reproductions.schemas",
        description="Write the JSON Schemas of what the harness writes.",
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing, name those not current"
    )
    options = parser.parse_args(arguments)
    old = outdated()
    for name in old:
        if not options.check:
            place(name).parent.mkdir(parents=True, exist_ok=True)
            place(name).write_text(written_form(schema_of(name)), encoding="utf-8")
        print(f"{'not up to date' if options.check else 'written'}: {name}")
    print(f"{len(MODELS)} schemas, {len(old)} {'old' if options.check else 'written'}")
    return 1 if options.check and old else 0


if __name__ == "__main__":
    sys.exit(main())
