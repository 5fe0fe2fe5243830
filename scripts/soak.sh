#!/usr/bin/env bash
# Owns: the command of the soak in this tree, run with the tools' Python.
#
#   scripts/soak.sh [--minutes N] [--binary FILE] [--report DIRECTORY] [--seed N]
# Needs what `scripts/setup.sh build test` installs, and the binary: target/release/bolide,
# unless it is told another. The report is target/tmp/soak/report.txt.
set -euo pipefail
cd "$(dirname "$0")/.."
export BOLIDE_TOOLS=${BOLIDE_TOOLS:-$HOME/.cache/bolide-tools}
python=$BOLIDE_TOOLS/venv/bin/python
[ -x "$python" ] || { printf 'soak: missing: %s; run: scripts/setup.sh test\n' "$python" >&2; exit 1; }
PYTHONPATH=tests PYTHONDONTWRITEBYTECODE=1 exec "$python" -m soak "$@"
