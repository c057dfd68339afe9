"""`python -m truegap`: the command, where its script is not on the path."""

from truegap.cli import main

if __name__ == "__main__":
    main()
