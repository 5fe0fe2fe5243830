#!/usr/bin/env bash
# Owns: how many lines of the crates that serve requests the simulator alone reaches, by file.
#
#   scripts/coverage.sh
#
# Builds the simulator's tests with the compiler's own counters in worker, quic, wire and the
# simulator, beside the other builds of target/, runs them (BOLIDE_SIM_SEEDS as in docs/TESTING.md),
# and prints a line for each file of worker, quic and wire, and a sum for each crate. Needs the
# component llvm-tools of rustup.
set -euo pipefail

if [ $# -gt 0 ]; then
    # cargo asks for a compiler: RUSTC_WORKSPACE_WRAPPER is this file.
    rustc=$1
    shift
    for crate in bolide_worker bolide_quic bolide_wire bolide_sim seeds; do
        case " $* " in
            *" --crate-name $crate "*) exec "$rustc" "$@" -C instrument-coverage ;;
        esac
    done
    exec "$rustc" "$@"
fi

cd "$(dirname "$0")/.."
export PATH=$PATH:$HOME/.cargo/bin

tools=$(dirname "$(rustc --print target-libdir)")/bin
[ -x "$tools/llvm-cov" ] || { echo "missing tool: llvm-cov (run rustup component add llvm-tools)" >&2; exit 1; }
out=$(realpath -m "${CARGO_TARGET_DIR:-target}/coverage")
rm -rf "$out"
mkdir -p "$out"
RUSTC_WORKSPACE_WRAPPER=$(realpath scripts/coverage.sh)
export RUSTC_WORKSPACE_WRAPPER LLVM_PROFILE_FILE=$out/%p-%m.profraw

program=$(cargo test --workspace --locked --no-run --test seeds 2>&1 | tee /dev/stderr |
    sed -n 's/^ *Executable .*(\(.*\))$/\1/p')
program=$(realpath "$program")
# Those of build scripts.
rm -f "$out"/*.profraw
(cd crates/sim && "$program")
"$tools/llvm-profdata" merge -sparse "$out"/*.profraw -o "$out/all.profdata"
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
