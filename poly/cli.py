"""The command line's entry point."""

from __future__ import annotations

import sys


def main() -> None:
    """Run `poly`. The command line needs click: without it, exit with a message that says how to install it."""
    try:
        from poly.commands import poly
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        sys.exit("poly's command line needs the package click: pip install 'poly-loops[cli]'")
    poly(prog_name="poly")


if __name__ == "__main__":
    main()
