"""`python -m rightly` is the command line."""

import sys

from rightly.cli import main

sys.exit(main())
