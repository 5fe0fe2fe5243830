#!/usr/bin/env bash
# Owns: the tests of a release's packages: the binary that is given away, by lintian, on a clean
# Debian 12 and sid, and below systemd; the RPM package by its life in a root.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=tests/package
tools=${BOLIDE_TOOLS:-$HOME/.cache/bolide-tools}
[ "$(id -u)" = 0 ] || { echo "package-test: mounts and namespaces are made: run it as root" >&2; exit 1; }

rm -rf target/packages
scripts/package.sh deb rpm dist image
lintian --allow-root --fail-on error,warning target/packages/*.deb
(cd target/packages && sha256sum --check --strict SHA256SUMS)
$here/in_clean_root.sh "$tools/bookworm" target/packages/*.deb
$here/in_clean_root.sh "$tools/sid-clean" target/packages/*.deb
$here/rpm_in_root.sh "$tools/bookworm" target/packages/*.rpm
$here/below_systemd.sh "$tools/bookworm" target/packages/*.deb
$here/image.sh target/packages/*.oci.tar
