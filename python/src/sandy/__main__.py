"""Runs the command line program: `python -m sandy run -- make test`."""

from sandy._cli import main

if __name__ == "__main__":
    main()
