"""Makes `python -m bolide_lab` the same as the command `lab`."""

import sys

from bolide_lab.cli import main

if __name__ == "__main__":
    sys.exit(main())
