"""Where the command `weft` begins.

Little is imported before the first line runs, so that Ctrl-C in the first seconds, while packages
are being loaded, ends the command without a traceback.
"""

from __future__ import annotations

import sys

INTERRUPTED = 130


def app() -> None:
    """Run the command that the arguments name."""
    try:
        from weft.cli.commands import app as commands

        commands()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    app()
