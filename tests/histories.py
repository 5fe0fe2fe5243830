"""The command of the random histories of cached sites, which `histories.run` owns."""

import sys

from histories.run import main

if __name__ == "__main__":
    sys.exit(main())
