#!/usr/bin/env bash
# Owns: how a run of the tests compiles a crate of the workspace: once, with the compiler's and
# clippy's warnings as errors, and with the links in its comments checked, those of private items too.
#
#   RUSTC_WORKSPACE_WRAPPER=scripts/rustc.sh cargo test ...     cargo adds: RUSTC ARGUMENTS
set -euo pipefail

# rustdoc takes what the compiler takes, but for what is made and where. It only checks: writing the
# pages takes longer. That option is not stable yet; rust-toolchain.toml pins the compiler.
compiled=() documented=(-Z unstable-options --check --document-private-items -D warnings)
crate='' value_of='' test=''
for word in "${@:2}"; do
    compiled+=("$word")
    case $value_of$word in
        --test) test=yes ;;
        -) test=no ;;
        --emit=* | -C=incremental=*) ;;
        -C=*) documented+=(-C "$word") ;;
        --out-dir=*) ;;
        -C | --out-dir) value_of=$word=; continue ;;
        --crate-name) crate=yes; documented+=("$word") ;;
        *) documented+=("$word") ;;
    esac
    value_of=''
done

# To optimise what runs for a second takes longer than that: the tests of a crate are not, where the
# crate is so that other tests run fast.
if [ "$test" = yes ]; then
    compiled=("${compiled[@]/#opt-level=1/opt-level=0}")
fi
clippy-driver "$1" "${compiled[@]}" -D warnings

# Builds of tests, and what cargo asks of a compiler before it builds, have no documentation.
[ -n "$test" ] || [ -z "$crate" ] || RUSTC_BOOTSTRAP=1 rustdoc "${documented[@]}"
