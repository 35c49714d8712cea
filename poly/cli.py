"""The command line's entry point."""

from __future__ import annotations

from poly.commands import poly


def main() -> None:
    """Run `poly`."""
    poly(prog_name="poly")


if __name__ == "__main__":
    main()
