#!/usr/bin/env bash
# Owns: `make bench`. Builds the release binary and measures it beside the servers
# that are installed. Arguments go to bench.py:
#   --only h2-html,h3-html  --servers bolide,nginx  --reps 5  --quick  --long
#   --json FILE  --markdown
# BOLIDE_BINARY names a binary that is ready, instead of building one.
set -euo pipefail
cd "$(dirname "$0")/.."

export BOLIDE_TOOLS=${BOLIDE_TOOLS:-$HOME/.cache/bolide-tools}
export PATH=$BOLIDE_TOOLS/bin:$PATH:$HOME/.cargo/bin

binary=${BOLIDE_BINARY:-}
if [ -z "$binary" ]; then
    cargo build --release --locked --bin bolide
    binary=${CARGO_TARGET_DIR:-target}/release/bolide
fi
exec python3 bench/bench.py --bolide "$binary" "$@"
