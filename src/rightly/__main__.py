"""`python -m rightly` is the command line."""

import sys

from rightly.cli import main

if __name__ == "__main__":
    sys.exit(main())
