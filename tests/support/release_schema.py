"""Keeps today's schema as what a released version promises: an explicit act. Blocking I/O.

`python -m tests.support.release_schema` writes docs/protocol/released/VERSION.schema.json;
it replaces one that is there only with `--replace`, for a promise that nobody was given.
"""

import sys
from pathlib import Path
from typing import Final

from transport.protocol.schema import schema_text
from transport.protocol.session import PROTOCOL_VERSION

RELEASED: Final = Path(__file__).parents[2] / "docs" / "protocol" / "released"


def main(argv: list[str]) -> int:
    """Write the file of this version; return the exit code."""
    path = RELEASED / f"{PROTOCOL_VERSION}.schema.json"
    if path.exists() and "--replace" not in argv:
        sys.stderr.write(f"{path} is there: a promise is kept (or use --replace)\n")
        return 1
    path.parent.mkdir(exist_ok=True)
    path.write_text(schema_text(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
