"""`python -m seqtool` is the same program as `seqtool`."""

from seqtool.cli.main import main

if __name__ == "__main__":
    main()
