"""The command of the search for differences from nginx, which `nginx.explore.command` owns."""

import sys

from nginx.explore.command import main

if __name__ == "__main__":
    sys.exit(main())
