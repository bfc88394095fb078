"""The program from its first line on; also `python -m clients.cli`. Blocking I/O.

Little is imported before Ctrl-C is heard: it may come while all the rest is loaded.
"""

import sys

_INTERRUPTED = 130  # 128 and the number of SIGINT, as shells say


def main() -> None:
    """Entry point of `threadgate`."""
    try:
        from clients.cli.app import main as run  # noqa: PLC0415 - Ctrl-C is heard first

        run()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
