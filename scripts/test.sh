#!/usr/bin/env bash
# Owns: the order in which a change is checked. Cheap gates first, then every
# test, then the release build; the test totals are repeated at the end.
#
#   scripts/test.sh [check]     check: the gates without tests, only
# Needs what `scripts/setup.sh build test` installs.
set -euo pipefail
cd "$(dirname "$0")/.."

export BOLIDE_TOOLS=${BOLIDE_TOOLS:-$HOME/.cache/bolide-tools}
export PATH=$BOLIDE_TOOLS/bin:$PATH:$HOME/.cargo/bin

run() {
    printf '\n==> %s\n' "$*"
    local t=$SECONDS
    "$@" || { printf '==> FAILED: %s\n' "$*"; return 1; }
    printf '==> ok (%s s)\n' "$((SECONDS - t))"
}

run cargo fmt --all --check
run cargo clippy --workspace --all-targets --locked -- -D warnings
[ "${1:-}" = check ] && exit

log=$(mktemp)
trap 'rm -f "$log"' EXIT
tested=0
run cargo test --workspace --locked --no-fail-fast 2>&1 | tee "$log" || tested=$?
[ $tested != 0 ] || run cargo build --release --locked

# Cargo ends with the summary of the last crate, often an empty one: add them up.
printf '\n==> tests\n'
grep '^test result: ' "$log" | grep -v ' 0 passed; 0 failed; 0 ignored' || true
awk '/^test result: / { p += $4; f += $6; s += $8 }
     END { printf "%d passed, %d failed, %d skipped\n", p, f, s; exit p + f == 0 }' "$log" || tested=1
exit $tested
