"""The command line, ``python -m bandits``."""

import sys

from .cli.main import main

if __name__ == "__main__":
    sys.exit(main())
