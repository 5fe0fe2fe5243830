#!/usr/bin/env bash
# Owns: how a run of the tests compiles a crate of the workspace: once, with the compiler's and
# clippy's warnings as errors, and with the links in its comments checked, those of private items too.
#
#   RUSTC_WORKSPACE_WRAPPER=scripts/rustc.sh cargo test ...     cargo adds: RUSTC ARGUMENTS
set -euo pipefail

clippy-driver "$@" -D warnings

# rustdoc takes what the compiler takes, but for what is made and where. Builds of tests, and what
# cargo asks of a compiler before it builds, have no documentation.
arguments=(--document-private-items -D warnings) crate='' out='' value_of=''
for word in "${@:2}"; do
    case $value_of$word in
        --test | -) exit 0 ;;
        --emit=* | -C=incremental=*) ;;
        -C=*) arguments+=(-C "$word") ;;
        --out-dir=*) out=$word ;;
        -C | --out-dir) value_of=$word=; continue ;;
        --crate-name) crate=yes; arguments+=("$word") ;;
        *) arguments+=("$word") ;;
    esac
    value_of=''
done
[ -z "$crate" ] || rustdoc "${arguments[@]}" --out-dir "${out%/deps}/doc"
