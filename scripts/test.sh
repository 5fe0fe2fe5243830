#!/usr/bin/env bash
# Owns: the order in which a change is checked. Cheap gates first, then every
# test, then the release build; the test totals are repeated at the end, as a sum.
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

# What the laboratory's own Python does, in its directory.
in_lab() { (cd lab && PATH=$BOLIDE_TOOLS/venv/bin:$PATH "$@"); }

run in_lab ruff format --check .
run in_lab ruff check .
run in_lab mypy
run scripts/lab check
run cargo fmt --all --check
run cargo clippy --workspace --all-targets --locked -- -D warnings
[ "${1:-}" = check ] && exit

log=$(mktemp)
trap 'rm -f "$log" "$log.lab"' EXIT
tested=0
run in_lab pytest --color=no -rs 2>&1 | tee "$log.lab" || tested=$?
run cargo test --workspace --locked --no-fail-fast 2>&1 | tee "$log" || tested=$?
[ $tested != 0 ] || run cargo build --release --locked

# Cargo ends with the summary of the last crate, often an empty one: add them up, and pytest's.
printf '\n==> tests\n'
summary=$(tail -n 20 "$log.lab" | grep -E "^[0-9]+ [a-z]+.* in [0-9.]+s") || summary="1 failed: no summary of pytest"
printf 'lab: %s\n' "$summary"
grep '^test result: ' "$log" | grep -v ' 0 passed; 0 failed; 0 ignored' || true
{ grep "^test result: " "$log" || true; echo "lab: $summary"; } |
    awk '/^test result: / { p += $4; f += $6; s += $8 }
         /^lab: / { for (i = 2; i < NF; i++) { if ($(i+1) ~ /^passed/) p += $i
                        if ($(i+1) ~ /^(failed|error)/) f += $i; if ($(i+1) ~ /^skipped/) s += $i } }
         END { printf "%d passed, %d failed, %d skipped\n", p, f, s; exit p + f == 0 }' || tested=1
exit $tested
