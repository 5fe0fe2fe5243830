"""The command of the comparison with nginx, which `nginx.compare` owns."""

import sys

from nginx.compare import main

if __name__ == "__main__":
    sys.exit(main())
