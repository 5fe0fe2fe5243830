#!/usr/bin/env bash
# Owns: the order in which a change is checked. Cheap gates first, then one build, which lints, then
# every test; the test totals are repeated at the end, as a sum.
#
#   scripts/test.sh [check]     check: the gates without tests, only
#
# What needs the compiler and what does not runs side by side, and so do the tests of the real
# binary, which often wait, the simulator's, which compute, and all others.
# Needs what `scripts/setup.sh build` installs; the rest is installed beside the build.
set -euo pipefail
cd "$(dirname "$0")/.."

export BOLIDE_TOOLS=${BOLIDE_TOOLS:-$HOME/.cache/bolide-tools}
export PATH=$BOLIDE_TOOLS/bin:$PATH:$HOME/.cargo/bin

# What is kept for the next build makes the first one longer.
[ -e "${CARGO_TARGET_DIR:-target}/debug/incremental" ] || export CARGO_INCREMENTAL=0

# A fresh machine builds everything, in a fifth less time without line tables; panics say their line
# all the same.
[ -z "${CI:-}" ] || export CARGO_PROFILE_DEV_DEBUG=0

# Lints and links are judged by the build that the tests run: another front end takes minutes.
export RUSTC_WORKSPACE_WRAPPER=$PWD/scripts/rustc.sh

# Tests write tens of gigabytes that nothing reads again: into memory, where that has room, for on
# a disk they wait for one another. The name is short: sockets and nginx's tables want that.
scratch=${TMPDIR:-/tmp}
has_room() { [ "$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1)" -ge $((8 << 20)) ]; }
# Where others may change /dev, no file below it is root's alone, which some tests need.
is_open() { [ -n "$(find /dev -maxdepth 0 -perm -002)" ]; }
mounted=
if has_room && ! is_open; then scratch=/dev/shm; fi
TMPDIR=$(mktemp -d "$scratch/b.XXXXXX")
export TMPDIR
if has_room && is_open; then mount -t tmpfs tmpfs "$TMPDIR" 2>/dev/null && mounted=yes; fi
chmod 755 "$TMPDIR"
trap '[ -z "$mounted" ] || umount -l "$TMPDIR"; rm -rf "$TMPDIR"' EXIT
logs=$TMPDIR/logs
mkdir "$logs"

run() {
    printf '\n==> %s\n' "$*"
    local t=$SECONDS
    "$@" || { printf '==> FAILED: %s\n' "$*"; return 1; }
    printf '==> ok: %s (%s s)\n' "$*" "$((SECONDS - t))"
}

# What the laboratory's own Python does, in its directory.
in_lab() { (cd lab && PATH=$BOLIDE_TOOLS/venv/bin:$PATH "$@"); }

# Python outside of it that keeps its rules.
beside_lab=(../tests/{soak,nginx,histories} ../tests/{compare,contrib,explore,framing,histories}.py ../bench/fleet.py)

check_lab() {
    run in_lab ruff format --check . && run in_lab ruff check . && run in_lab mypy &&
        run in_lab ruff format --check --config pyproject.toml "${beside_lab[@]}" &&
        run in_lab ruff check --config pyproject.toml "${beside_lab[@]}" &&
        run scripts/lab check && { [ -z "$1" ] || run in_lab pytest --color=no -rs; }
}

# The tests of the binary wait for timeouts and for one another's programs more than they compute, so they
# begin before all others are built. All packages are named, for `-p bolide` alone would have
# dependencies built again with fewer features.
binary=(--bin bolide --test main --test fuzz_replay)

# beside LANE COMMAND...: starts a command whose output waits until `joined` prints it.
declare -A lanes
beside() {
    local lane=$1; shift
    "$@" >"$logs/$lane" 2>&1 &
    lanes[$lane]=$!
}
joined() {
    local ended=0
    wait "${lanes[$1]}" || ended=$?
    cat "$logs/$1"
    return $ended
}

# What the build does not need is installed beside it; then come the gates that need no compiler.
beside_build() {
    run scripts/setup.sh "$tools" &&
        # What may be built in: licences, versions, sources. Advisories need a git host, so they are no gate.
        run cargo deny --locked check bans licenses sources && check_lab "$tests"
}

tests=yes tools=test failed=0
[ "${1:-}" != check ] || { tests="" tools=lab; }
run cargo fmt --all --check
beside lab beside_build
if [ -n "$tests" ]; then
    run cargo test --workspace --locked --no-run "${binary[@]}" || failed=1
else
    run cargo check --workspace --all-targets --locked || failed=1
fi
joined lab || failed=1
[ -n "$tests" ] && [ $failed = 0 ] || exit $failed

RUST_TEST_THREADS=$((4 * $(nproc))) beside binary \
    run cargo test --workspace --locked --no-fail-fast "${binary[@]}"
# Cargo builds for one command at a time, and what is built for this one is built already.
until grep -q '^ *Running' "$logs/binary" || ! kill -0 "${lanes[binary]}" 2>/dev/null; do sleep 0.1; done
run cargo test --workspace --exclude bolide --locked --no-run || failed=1
# The simulator computes for as long as all other crates together, of which some mostly wait.
beside seeds run cargo test --workspace --exclude bolide --locked --no-fail-fast --test seeds
run cargo test --workspace --exclude bolide --exclude bolide-sim --locked --no-fail-fast 2>&1 |
    tee "$logs/crates" || failed=1
joined seeds || failed=1
joined binary || failed=1

# Cargo ends with the summary of the last crate, often an empty one: add them up, and pytest's.
printf '\n==> tests\n'
summary=$(tail -n 20 "$logs/lab" | grep -E "^[0-9]+ [a-z]+.* in [0-9.]+s") || summary="1 failed: no summary of pytest"
printf 'lab: %s\n' "$summary"
cat "$logs/binary" "$logs/crates" "$logs/seeds" >"$logs/all"
grep '^test result: ' "$logs/all" | grep -v ' 0 passed; 0 failed; 0 ignored' || true
{ grep '^test .* FAILED$' "$logs/all" || true; } | sort -u
# What failed says why once more: a log of continuous integration is often kept from its end only.
awk '/^---- .* stdout ----$/ { shown = 60 } /^failures:$/ { shown = 0 }
     shown > 0 { print substr($0, 1, 400); shown-- }' "$logs/all"
{ grep "^test result: " "$logs/all" || true; echo "lab: $summary"; } |
    awk '/^test result: / { p += $4; f += $6; s += $8 }
         /^lab: / { for (i = 2; i < NF; i++) { if ($(i+1) ~ /^passed/) p += $i
                        if ($(i+1) ~ /^(failed|error)/) f += $i; if ($(i+1) ~ /^skipped/) s += $i } }
         END { printf "%d passed, %d failed, %d skipped\n", p, f, s; exit p + f == 0 }' || failed=1
exit $failed
