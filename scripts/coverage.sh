#!/usr/bin/env bash
# Owns: how many lines of the crates that serve requests the simulator alone reaches, by file.
#
#   scripts/coverage.sh
#
# Builds the simulator's tests with the compiler's own counters into target/coverage, runs them
# (BOLIDE_SIM_SEEDS as in docs/TESTING.md), and prints a line for each file of worker, quic and
# wire, and a sum for each crate. Needs the component llvm-tools of rustup.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH=$PATH:$HOME/.cargo/bin

tools=$(dirname "$(rustc --print target-libdir)")/bin
[ -x "$tools/llvm-cov" ] || { echo "missing tool: llvm-cov (run rustup component add llvm-tools)" >&2; exit 1; }
out=$(realpath -m "${CARGO_TARGET_DIR:-target}/coverage")
mkdir -p "$out"
rm -f "$out"/*.profraw
export CARGO_TARGET_DIR=$out RUSTFLAGS="-C instrument-coverage"
export LLVM_PROFILE_FILE=$out/%p-%m.profraw

cargo test -p bolide-sim --locked --no-run
cargo test -p bolide-sim --locked --test seeds
"$tools/llvm-profdata" merge -sparse "$out"/*.profraw -o "$out/all.profdata"
program=$(ls -t "$out"/debug/deps/seeds-* | grep -v '\.d$' | head -1)
"$tools/llvm-cov" export --format=lcov --instr-profile="$out/all.profdata" "$program" |
    awk -F '[:,]' '
        $1 == "SF" { file = $2; crate = ""
            if (match(file, /crates\/(worker|quic|wire)\/src\//)) {
                file = substr(file, RSTART); split(file, part, "/"); crate = part[2] } }
        crate == "" || file ~ /tests?\.rs$|\/tests\/|fuzz/ { next }
        $1 == "DA" { all[file]++; sum[crate]++; if ($3 > 0) { hit[file]++; sum_hit[crate]++ } }
        END {
            for (file in all) printf "%5.1f %% of %5d  %s\n", 100 * hit[file] / all[file], all[file], file | "sort -k5"
            close("sort -k5")
            for (crate in sum) printf "%5.1f %% of %5d  %s, the whole crate\n", 100 * sum_hit[crate] / sum[crate], sum[crate], crate
        }'
