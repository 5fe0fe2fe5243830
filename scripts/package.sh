#!/usr/bin/env bash
# Owns: what is given away of a built binary: packages for dpkg and RPM, a tarball, an image for containers, and
# the list of what is in them (SBOM). All are made from one staged tree, whose files come from packaging/ and conf/; the
# version is that of Cargo.toml, its day that of packaging/date, the changes those of CHANGELOG.md.
#
#   scripts/package.sh deb|rpm|dist|image... [--binary FILE] [--out DIRECTORY]
#     --binary FILE    the binary (default: target/release/bolide, built if need be)
#     --out DIRECTORY  where the results go (default: target/packages)
#
# The same binary and tree give the same bytes. Needs dpkg-deb, binutils and python3; rpmbuild for rpm.
set -euo pipefail
cd "$(dirname "$0")/.."

die() { printf 'package: %s\n' "$@" >&2; exit 1; }

binary='' out=target/packages what=()
while [ $# -gt 0 ]; do
    case $1 in
    deb | rpm | dist | image) what+=("$1") ;;
    --binary) binary=${2:?--binary wants a file}; shift ;;
    --out) out=${2:?--out wants a directory}; shift ;;
    *) die "unknown: $1" "usage: scripts/package.sh deb|rpm|dist|image... [--binary FILE] [--out DIRECTORY]" ;;
    esac
    shift
done
[ ${#what[@]} != 0 ] || die "usage: scripts/package.sh deb|rpm|dist|image... [--binary FILE] [--out DIRECTORY]"
for tool in dpkg-deb strip readelf python3 gzip; do
    command -v "$tool" >/dev/null || die "missing: $tool; run: scripts/setup.sh build"
done
if [ -z "$binary" ]; then
    cargo build --release --locked --bin bolide
    binary=target/release/bolide
fi
[ -x "$binary" ] || die "no binary: $binary"

version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
day=$(cat packaging/date)
# How hard to compress, 1 to 9: tests are in a hurry.
export BOLIDE_PACKAGE_LEVEL=${BOLIDE_PACKAGE_LEVEL:-9}
level=$BOLIDE_PACKAGE_LEVEL
maintainer=${BOLIDE_MAINTAINER:-The Bolide developers <bolide@bolide.invalid>}
architecture=$(dpkg --print-architecture)
export SOURCE_DATE_EPOCH; SOURCE_DATE_EPOCH=$(date -u -d "$day" +%s)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
out=$(cd "$out" && pwd)

strip -o "$work/bolide" --strip-unneeded --remove-section=.comment --remove-section=.note "$binary"
scripts/sbom.py >"$work/sbom.cdx.json"

# The oldest glibc that has all that the binary asks for.
glibc() { readelf -V "$work/bolide" | grep -o 'GLIBC_[0-9.]*' | cut -d_ -f2 | sort -Vu | tail -n 1; }

put() { install -D -m "$1" "$2" "$3"; }
squeezed() { gzip -9n >"$1"; }

# stage ROOT UNITS: the files where they belong, as on any Linux with systemd
stage() {
    local root=$1 units=$2 file
    put 755 "$work/bolide" "$root/usr/sbin/bolide"
    for file in conf/mime.types conf/fastcgi.conf conf/*_params conf/snippets/*; do
        put 644 "$file" "$root/etc/bolide/${file#conf/}"
    done
    put 644 packaging/etc/bolide.conf "$root/etc/bolide/bolide.conf"
    put 644 packaging/etc/conf.d/default.conf "$root/etc/bolide/conf.d/default.conf"
    put 644 packaging/logrotate.d/bolide "$root/etc/logrotate.d/bolide"
    install -d "$root"/etc/bolide/sites-{available,enabled} "$root"/var/{log,cache}/bolide
    put 644 packaging/html/index.html "$root/usr/share/bolide/html/index.html"
    for file in packaging/systemd/*; do put 644 "$file" "$root/$units/${file##*/}"; done
    put 644 packaging/sysusers.d/bolide.conf "$root/usr/lib/sysusers.d/bolide.conf"
    put 644 packaging/tmpfiles.d/bolide.conf "$root/usr/lib/tmpfiles.d/bolide.conf"
    put 644 packaging/completions/bolide "$root/usr/share/bash-completion/completions/bolide"
    put 644 packaging/completions/_bolide "$root/usr/share/zsh/vendor-completions/_bolide"
    put 644 packaging/completions/bolide.fish "$root/usr/share/fish/vendor_completions.d/bolide.fish"
    for file in packaging/man/*; do
        install -d "$root/usr/share/man/man${file##*.}"
        squeezed "$root/usr/share/man/man${file##*.}/${file##*/}.gz" <"$file"
    done
    put 644 "$work/sbom.cdx.json" "$root/usr/share/doc/bolide/sbom.cdx.json"
}

# The changes of the newest version, one a line.
changes() {
    awk '/^## /{ if (n++) exit; next } /^- /{ if (line) print line; line = substr($0, 3); next }
         /^  /{ sub(/^ +/, " "); line = line $0 } /^#/{ if (line) print line; line = "" }
         END { if (line) print line }' CHANGELOG.md
}

# The same in Debian's form.
changelog() {
    printf 'bolide (%s) unstable; urgency=medium\n\n' "$version"
    changes |
        while IFS= read -r line; do
            fold -s -w 72 <<<"$line" | sed -e 's/ *$//' -e '1s/^/  * /' -e '2,$s/^/    /'
        done
    printf '\n -- %s  %s\n' "$maintainer" "$(LC_ALL=C date -u -R -d "$day")"
}

# A script of a package, with the functions that pass sockets on to the new binary.
with_hand_over() { sed -e '/^@HAND_OVER@$/{r packaging/hand-over.sh' -e 'd}' "$1"; }

make_deb() {
    local root=$work/deb doc
    doc=$root/usr/share/doc/bolide
    stage "$root" lib/systemd/system
    changelog | squeezed "$doc/changelog.gz"
    sed -e 's/^$/./' -e 's/^/ /' LICENSE-MIT >"$work/mit"
    sed -e "/@MIT@/{r $work/mit" -e 'd}' packaging/debian/copyright >"$doc/copyright"
    install -d "$root/DEBIAN"
    (cd "$root" && find etc -type f -printf '/%p\n' | sort >DEBIAN/conffiles &&
        find . -path ./DEBIAN -prune -o -type f -printf '%P\0' | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
    local size; size=$(du -k -s --apparent-size "$root" | cut -f1)
    sed -e "s/@VERSION@/$version/" -e "s/@ARCHITECTURE@/$architecture/" -e "s/@SIZE@/$size/" \
        -e "s/@MAINTAINER@/$maintainer/" -e "s/@DEPENDS@/adduser, libc6 (>= $(glibc)), libgcc-s1/" \
        packaging/debian/control >"$root/DEBIAN/control"
    install -m 755 packaging/debian/{prerm,postrm} "$root/DEBIAN"
    with_hand_over packaging/debian/postinst >"$root/DEBIAN/postinst"
    chmod 755 "$root/DEBIAN/postinst"
    [ ! -s packaging/debian/lintian-overrides ] ||
        put 644 packaging/debian/lintian-overrides "$root/usr/share/lintian/overrides/bolide"
    find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
    local name=bolide_${version}_$architecture.deb
    dpkg-deb --root-owner-group -Zxz "-z$level" --build "$root" "$out/$name" >/dev/null
    printf '%s\n' "$out/$name"
}

# For Fedora, openSUSE and their kin; who makes the account and the directories is systemd.
make_rpm() {
    command -v rpmbuild >/dev/null || die "missing: rpmbuild; run: scripts/setup.sh test"
    local root=$work/rpm spec=$work/bolide.spec path machine
    machine=$(uname -m)
    stage "$root" usr/lib/systemd/system
    rm -r "$root/var"
    put 644 packaging/completions/_bolide "$root/usr/share/zsh/site-functions/_bolide"
    rm -r "$root/usr/share/zsh/vendor-completions"
    for path in LICENSE-MIT LICENSE-APACHE; do put 644 "$path" "$root/usr/share/licenses/bolide/$path"; done
    find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
    # Directories of ours, and all files; those below etc stay as they are over upgrades.
    (cd "$root" && find etc/bolide usr/share/bolide usr/share/doc/bolide usr/share/licenses/bolide -type d -printf '%%dir /%p\n' &&
        find etc -type f -printf '%%config(noreplace) /%p\n' && find usr -type f -printf '/%p\n') |
        sort >"$work/files"
    { printf '* %s %s - %s-1\n' "$(LC_ALL=C date -u -d "$day" '+%a %b %d %Y')" "$maintainer" "$version"
      changes | sed -e 's/%/%%/g' -e 's/^/- /'; } >"$work/changes"
    with_hand_over packaging/rpm/bolide.spec |
        sed -e "s/@VERSION@/$version/" -e "s/@MAINTAINER@/$maintainer/" -e "s|@TREE@|$root|" \
            -e "s|@FILES@|$work/files|" -e "/^@CHANGES@$/{r $work/changes" -e 'd}' >"$spec"
    rpmbuild -bb --quiet --target "$machine" --buildroot "$work/rpm-root" \
        --define "_topdir $work/rpmbuild" --define "_rpmdir $out" --define '_rpmfilename %{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}.rpm' \
        --define "_binary_payload w$level.xzdio" --define '_buildhost localhost' \
        --define 'use_source_date_epoch_as_buildtime 1' --define 'clamp_mtime_to_source_date_epoch 1' \
        "$spec" >"$work/rpm.log" 2>&1 || { cat "$work/rpm.log" >&2; die "rpmbuild failed"; }
    printf '%s\n' "$out/bolide-$version-1.$machine.rpm"
}

# As the package, for any Linux with this glibc or a newer one; its install.sh puts it in place.
make_dist() {
    local name root
    name=bolide-$version-$(uname -m)-linux-glibc$(glibc)
    root=$work/dist/$name
    stage "$root" usr/lib/systemd/system
    rm -r "$root/var"
    put 755 packaging/install.sh "$root/install.sh"
    put 644 LICENSE-MIT "$root/usr/share/doc/bolide/LICENSE-MIT"
    put 644 LICENSE-APACHE "$root/usr/share/doc/bolide/LICENSE-APACHE"
    put 644 CHANGELOG.md "$root/usr/share/doc/bolide/CHANGELOG.md"
    tar -C "$work/dist" --sort=name --owner=0 --group=0 --numeric-owner \
        --mtime="@$SOURCE_DATE_EPOCH" -cf - "$name" | gzip -n "-$level" >"$out/$name.tar.gz"
    cp "$work/sbom.cdx.json" "$out/$name.cdx.json"
    (cd "$out" && sha256sum "$name.tar.gz" "$name.cdx.json" >SHA256SUMS)
    printf '%s\n' "$out/$name.tar.gz"
}

# The binary with the libraries that it is linked with, and nothing else: no shell, no package manager.
make_image() {
    local root=$work/image file
    put 755 "$work/bolide" "$root/usr/sbin/bolide"
    for file in conf/mime.types conf/fastcgi.conf conf/*_params conf/snippets/*; do
        put 644 "$file" "$root/etc/bolide/${file#conf/}"
    done
    put 644 packaging/image/bolide.conf "$root/etc/bolide/bolide.conf"
    put 644 packaging/image/default.conf "$root/etc/bolide/conf.d/default.conf"
    put 644 packaging/html/index.html "$root/usr/share/bolide/html/index.html"
    for file in LICENSE-MIT LICENSE-APACHE "$work/sbom.cdx.json"; do
        put 644 "$file" "$root/usr/share/doc/bolide/${file##*/}"
    done
    ldd "$work/bolide" | grep -o '/[^ ]*' | while IFS= read -r file; do
        put 755 "$(readlink -f "$file")" "$root$file"
    done
    [ ! -e /etc/ssl/certs/ca-certificates.crt ] ||
        put 644 /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
    printf 'root:x:0:0::/:/nologin\nbolide:x:65532:65532::/:/nologin\n' >"$root/etc/passwd"
    printf 'root:x:0:\nbolide:x:65532:\n' >"$root/etc/group"
    chmod 644 "$root/etc/passwd" "$root/etc/group"
    install -d "$root/var/www/html" "$root/proc" "$root/dev" "$root/sys"
    install -d -m 1777 "$root/tmp"
    scripts/image.py "$root" "$version" "$out/bolide-$version-$architecture.oci.tar"
    printf '%s\n' "$out/bolide-$version-$architecture.oci.tar"
}

for one in "${what[@]}"; do "make_$one"; done
