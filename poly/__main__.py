"""`python -m poly`: the command `poly`, where its folder is not on the path."""

from poly.cli import main

if __name__ == "__main__":
    main()
