#!/usr/bin/env bash
# Owns: every tool this project needs outside its own tree.
#
#   scripts/setup.sh [build|lab|test|peers]...      (no argument: build)
#     build  what `cargo build` needs: C compiler, make, cmake, pkg-config, Rust
#     lab    what the gates without tests need: a Python venv of the versions that
#            scripts/requirements.txt names, and cargo-deny
#     test   what the tests need: that venv, curl, wrk, nghttp2-client, openssl,
#            valgrind, chromium, mandoc, zsh, fish, lintian, h2spec, h2load and curl that speak HTTP/3,
#            a Debian 12 root to install packages in,
#            nginx to be compared with, php-fpm, lsphp, MariaDB and WordPress,
#            Prometheus, which reads the metrics, Valkey, which carries purges between nodes, and
#            Pebble, which issues certificates
#     peers  the servers that `make bench` and `make lab` compare with: nginx,
#            caddy, h2o, haproxy, vinyl with hitch
#
# Host packages come from apt. Everything else lives in BOLIDE_TOOLS (default
# ~/.cache/bolide-tools): bin/ (put it first in PATH), venv/, and sid/, a Debian
# sid root for programs too new for the host. Wrappers in bin/ start those with
# sid's own loader, so nothing stays mounted and no chroot is needed to use them.
# Safe to run again: what is there is left alone, and then no network is used.
set -euo pipefail

TOOLS=${BOLIDE_TOOLS:-$HOME/.cache/bolide-tools}
BIN=$TOOLS/bin SID=$TOOLS/sid VENV=$TOOLS/venv
SELF=$0 WHAT=${*:-build}
PY_DEPS=$(dirname "$SELF")/requirements.txt
export DEBIAN_FRONTEND=noninteractive

say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: %s\n' "$@" >&2; exit 1; }

# as_root MISSING HOW COMMAND...: run COMMAND as root, or say what is missing and how to get it
as_root() {
    local missing=$1 how=$2; shift 2
    if [ "$(id -u)" = 0 ]; then "$@"
    elif command -v sudo >/dev/null; then sudo --preserve-env=DEBIAN_FRONTEND "$@"
    else die "missing: $missing" "this user is not root and there is no sudo; run as root: $how"
    fi
}
sid_as_root() { as_root "a Debian root in $TOOLS" "BOLIDE_TOOLS=$TOOLS $SELF $WHAT" "$@"; }

# ---- host packages -------------------------------------------------------

installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

apt_need() {
    command -v apt-get >/dev/null || die "missing: apt-get (this script knows Debian and Ubuntu); install by hand: $*"
    local p missing=()
    for p; do installed "$p" || missing+=("$p"); done
    [ ${#missing[@]} = 0 ] && return
    say "installing ${missing[*]}"
    local how="apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
    # A server package must not start its service on this host.
    as_root "${missing[*]}" "$how" sh -c '
        rc=/usr/sbin/policy-rc.d
        if [ ! -e $rc ]; then
            trap "rm -f $rc" EXIT
            printf "#!/bin/sh\nexit 101\n" >$rc && chmod 755 $rc
        fi
        apt="apt-get -y -q -o DPkg::Lock::Timeout=600"
        install="$apt install --no-install-recommends"
        $install "$@" </dev/null || { $apt update && $install "$@" </dev/null; }' sh "${missing[@]}" ||
        die "missing: ${missing[*]}" "apt could not install them (offline?); run as root: $how"
}

# ---- build ---------------------------------------------------------------

setup_build() {
    apt_need gcc g++ libc6-dev make cmake pkg-config curl ca-certificates git
    PATH=$PATH:$HOME/.cargo/bin
    if ! command -v cargo >/dev/null; then
        say "installing Rust by rustup"
        if apt-cache policy rustup | grep 'Candidate: [^(]' >/dev/null; then apt_need rustup
        else
            curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs |
                sh -s -- -q -y --no-modify-path --default-toolchain none &&
                say "add ~/.cargo/bin to PATH"
        fi || die "missing: cargo" "rustup could not be fetched (offline?); install it by hand, then run $SELF $WHAT again"
    fi
    # In the tree, rust-toolchain.toml says which toolchain and components.
    (
        cd "$(dirname "$SELF")/.."
        ready() { cargo --version && cargo fmt --version && cargo clippy --version; }
        ready >/dev/null 2>&1 || { say "installing the Rust toolchain" && rustup toolchain install && ready >/dev/null; }
    ) || die "missing: the Rust toolchain that rust-toolchain.toml names" "rustup could not fetch it (offline?); run in the project's root: rustup toolchain install"
}

# ---- the sid root --------------------------------------------------------

# The Debian archive that this host's own apt uses.
mirror() {
    local m=${BOLIDE_DEBIAN_MIRROR:-}
    [ -n "$m" ] || m=$(apt_mirror)
    [ -n "$m" ] || { as_root "apt's package lists" "apt-get update" apt-get -q update >&2 && m=$(apt_mirror); }
    [ -n "$m" ] || die "missing: a Debian archive in apt's sources" "run: BOLIDE_DEBIAN_MIRROR=<address of a Debian archive> $SELF $WHAT"
    printf '%s\n' "$m"
}

apt_mirror() {
    apt-get indextargets --format '$(ORIGIN) $(LABEL) $(SITE)' 'Created-By: Packages' |
        awk '$1 == "Debian" && $2 == "Debian" && !n++ { print $3 }'
}

# in_sid COMMAND...: run in the sid root. The mounts are made in a mount
# namespace of their own and are gone when the command ends, however it ends.
in_sid() {
    sid_as_root unshare --mount --propagation private sh -ec '
        root=$1; shift
        for m in proc sys dev; do mount --rbind /$m "$root/$m"; done
        cp -L /etc/resolv.conf "$root/etc/resolv.conf"
        exec chroot "$root" "$@"' sh "$SID" env -u LD_LIBRARY_PATH LC_ALL=C DEBIAN_FRONTEND=noninteractive \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

sid_root() {
    [ -e "$SID/.ready" ] && return
    apt_need debootstrap debian-archive-keyring
    local m; m=$(mirror)
    say "making the Debian sid root"
    sid_as_root rm -rf "$SID"
    mkdir -p "$TOOLS"
    sid_as_root unshare --mount --propagation private \
        debootstrap --variant=minbase --include=ca-certificates sid "$SID" "$m" >"$TOOLS/debootstrap.log" ||
        die "missing: the Debian sid root $SID" "debootstrap failed (offline?), see $TOOLS/debootstrap.log; then run $SELF $WHAT again"
    # No services; a mirror's sid may be past its date; it may be lost at any time, so no fsync.
    in_sid sh -ec '
        printf "#!/bin/sh\nexit 101\n" >/usr/sbin/policy-rc.d; chmod 755 /usr/sbin/policy-rc.d
        printf "deb %s sid main\ndeb-src %s sid main\n" "$1" "$1" >/etc/apt/sources.list
        printf "%s\n" "APT::Install-Recommends \"false\";" "APT::Sandbox::User \"root\";" \
            "Acquire::Check-Valid-Until \"false\";" "Acquire::Languages \"none\";" >/etc/apt/apt.conf.d/99bolide
        echo force-unsafe-io >/etc/dpkg/dpkg.cfg.d/bolide
        printf "%s\n" "path-exclude=/usr/share/doc/*" "path-exclude=/usr/share/man/*" \
            "path-exclude=/usr/share/locale/*" >>/etc/dpkg/dpkg.cfg.d/bolide
        apt-get -q update
        touch /.ready' sh "$m" || die "missing: package lists in the sid root" "apt-get update failed there (offline?); run $SELF $WHAT again"
}

sid_need() {
    sid_root
    local p missing=()
    for p; do
        grep -qs "^Package: $p\$" "$SID/var/lib/dpkg/status" || missing+=("$p")
    done
    [ ${#missing[@]} = 0 ] && return
    say "installing in the sid root: ${missing[*]}"
    in_sid sh -c 'i="apt-get install -y -q"; $i "$@" </dev/null || { apt-get -q update && $i "$@" </dev/null; }' sh "${missing[@]}" ||
        die "missing in the sid root: ${missing[*]}" "apt failed there (offline?); run $SELF $WHAT again"
}

# wrap NAME PROGRAM [ENVIRONMENT]: bin/NAME starts the sid root's PROGRAM with sid's libraries
wrap() {
    local ld; ld=$(echo "$SID"/usr/lib/*/ld-linux-*.so.[0-9])
    mkdir -p "$BIN"
    cat >"$BIN/$1.new" <<EOF
#!/bin/sh
${3:+export $3}
exec '$ld' --library-path '${ld%/*}' --argv0 '$1' '$SID$2' "\$@"
EOF
    chmod 755 "$BIN/$1.new" && mv "$BIN/$1.new" "$BIN/$1"
}

# Debian builds h2load without HTTP/3: build it from Debian's source.
# --tar-only: the upstream tarball is all that is needed; apt checks its hash.
h2load_h3() {
    [ -x "$BIN/h2load-h3" ] && [ -x "$SID/usr/local/bin/h2load-h3" ] && return
    sid_need build-essential dpkg-dev pkgconf libngtcp2-dev libngtcp2-crypto-ossl-dev libnghttp3-dev \
        libssl-dev libev-dev libc-ares-dev zlib1g-dev
    say "building h2load with HTTP/3"
    in_sid bash -ec '
        rm -rf /usr/local/src/h2load && mkdir -p /usr/local/src/h2load && cd /usr/local/src/h2load
        apt-get -q source --tar-only nghttp2
        tar xf nghttp2_*.orig.tar.*z && cd nghttp2-*/
        export CFLAGS=-O2 CXXFLAGS=-O2
        ./configure -q --enable-app --enable-http3 --disable-shared --enable-static --disable-hpack-tools \
            --without-libxml2 --without-systemd --without-jansson --without-jemalloc
        for d in lib third-party; do make -s -j"$(nproc)" -C $d; done
        make -s -j"$(nproc)" -C src h2load
        install -m755 src/h2load /usr/local/bin/h2load-h3
        rm -rf /usr/local/src/h2load' >"$TOOLS/h2load-h3.log" 2>&1 ||
        die "missing: h2load with HTTP/3" "its build failed, see $TOOLS/h2load-h3.log"
    wrap h2load-h3 /usr/local/bin/h2load-h3
}

# ---- test ----------------------------------------------------------------

# A Debian 12 as it is installed, with systemd and nginx, for the tests of the package; they do not
# change it.
bookworm_root() {
    local root=$TOOLS/bookworm packages=adduser,curl,dbus,iproute2,logrotate,nginx-light,systemd,systemd-sysv m
    grep -qsx "$packages" "$root/.ready" && return
    apt_need debootstrap debian-archive-keyring
    m=$(mirror)
    say "making the Debian 12 root"
    sid_as_root rm -rf "$root"
    mkdir -p "$TOOLS"
    sid_as_root unshare --mount --propagation private \
        debootstrap --variant=minbase "--include=$packages" bookworm "$root" "$m" >"$TOOLS/bookworm.log" ||
        die "missing: the Debian 12 root $root" "debootstrap failed (offline?), see $TOOLS/bookworm.log; then run $SELF $WHAT again"
    sid_as_root sh -c 'echo "$1" >"$2/.ready"' sh "$packages" "$root"
}

# A Debian sid with nginx and what the package needs, for the same tests. Its packages are apt's to
# order; no service is started, and a mirror's sid may be past its date.
sid_clean_root() {
    local root=$TOOLS/sid-clean packages="adduser curl iproute2 logrotate nginx" m
    grep -qsx "$packages" "$root/.ready" && return
    apt_need debootstrap debian-archive-keyring
    m=$(mirror)
    say "making the clean Debian sid root"
    sid_as_root rm -rf "$root"
    mkdir -p "$TOOLS"
    {
        sid_as_root unshare --mount --propagation private \
            debootstrap --variant=minbase sid "$root" "$m" &&
            SID=$root in_sid sh -ec '
                printf "#!/bin/sh\nexit 101\n" >/usr/sbin/policy-rc.d; chmod 755 /usr/sbin/policy-rc.d
                apt-get -q -o Acquire::Check-Valid-Until=false update
                apt-get -q -y --no-install-recommends install "$@"
                apt-get clean; rm /usr/sbin/policy-rc.d' sh $packages
    } >"$TOOLS/sid-clean.log" 2>&1 ||
        die "missing: the clean Debian sid root $root" "debootstrap or apt failed (offline?), see $TOOLS/sid-clean.log; then run $SELF $WHAT again"
    sid_as_root sh -c 'echo "$1" >"$2/.ready"' sh "$packages" "$root"
}

# h2spec 2.2.1 is the newest release that the Go module proxy has. It has no
# go.mod, so its dependencies are pinned here, to versions that Go 1.19 takes.
h2spec() {
    [ -x "$BIN/h2spec" ] && return
    command -v go >/dev/null || apt_need golang-go
    say "building h2spec"
    local d; d=$(mktemp -d)
    cat >"$d/go.mod" <<EOF
module tools
go 1.19
require (
    github.com/summerwind/h2spec v2.2.1+incompatible
    github.com/fatih/color v1.16.0
    github.com/spf13/cobra v1.8.0
    golang.org/x/net v0.23.0
)
EOF
    mkdir -p "$BIN"
    (cd "$d" && go build -mod=mod -buildvcs=false -o "$BIN/h2spec" github.com/summerwind/h2spec/cmd/h2spec) 2>"$d/log" ||
        die "missing: h2spec" "the Go module proxy did not deliver it (offline?): $(tail -n 1 "$d/log")" "then run $SELF $WHAT again"
    rm -rf "$d"
}

# Pebble is an issuer for the tests of certificates, challtestsrv its name server. They want a newer Go
# than Debian 12 has, so sid's builds them there; linked statically, they need no wrapper.
pebble() {
    local version=v2.10.1 least=24 module=github.com/letsencrypt/pebble/v2/cmd minor p
    grep -qsx "$version" "$TOOLS/pebble.version" && [ -x "$BIN/pebble" ] && [ -x "$BIN/pebble-challtestsrv" ] && return
    say "building Pebble $version"
    mkdir -p "$BIN"
    minor=$(go env GOVERSION 2>/dev/null | sed -n 's/^go1\.\([0-9]*\).*/\1/p')
    if [ "${minor:-0}" -ge "$least" ]; then
        GOBIN=$BIN CGO_ENABLED=0 go install "$module/pebble@$version" "$module/pebble-challtestsrv@$version"
    else
        sid_need golang-go
        in_sid env HOME=/root GOBIN=/usr/local/bin CGO_ENABLED=0 \
            go install "$module/pebble@$version" "$module/pebble-challtestsrv@$version" &&
            for p in pebble pebble-challtestsrv; do install -m755 "$SID/usr/local/bin/$p" "$BIN/$p"; done
    fi >"$TOOLS/pebble.log" 2>&1 ||
        die "missing: Pebble" "the Go module proxy did not deliver it (offline?), see $TOOLS/pebble.log; then run $SELF $WHAT again"
    echo "$version" >"$TOOLS/pebble.version"
}

venv() {
    cmp -s "$PY_DEPS" "$VENV/requirements.txt" && "$VENV/bin/python" -c '' 2>/dev/null && return
    say "installing into the Python venv what $PY_DEPS names"
    "$VENV/bin/python" -m pip --version >/dev/null 2>&1 || { rm -rf "$VENV" && /usr/bin/python3 -m venv "$VENV"; } &&
        "$VENV/bin/python" -m pip install -q --disable-pip-version-check --retries 1 -r "$PY_DEPS" &&
        cp "$PY_DEPS" "$VENV/requirements.txt" ||
        die "missing in $VENV: what $PY_DEPS names" "pip failed (offline?); run: $VENV/bin/pip install -r $PY_DEPS"
}

# The version is pinned, as its verdicts change with it. To optimise it takes minutes, and it runs for a second.
cargo_deny() {
    local version=0.20.2
    "$BIN/cargo-deny" --version 2>/dev/null | grep -qx "cargo-deny $version" && return
    say "building cargo-deny $version"
    (cd "$(dirname "$SELF")/.." && PATH=$PATH:$HOME/.cargo/bin cargo install -q --debug --locked --force \
        --version "$version" --root "$TOOLS" cargo-deny) ||
        die "missing: cargo-deny $version" "crates.io did not deliver it (offline?); run: cargo install --locked --version $version --root $TOOLS cargo-deny"
}

setup_lab() {
    apt_need python3 python3-venv
    venv
    cargo_deny
}

# lsphp looks for its settings and extensions where the sid root is not.
lsphp() {
    local program=("$SID"/usr/bin/lsphp[0-9]*) extensions=("$SID"/usr/lib/php/20*) version
    version=${program[-1]##*/lsphp}
    local etc=$SID/etc/php/$version/litespeed
    local ini=$etc/conf.d/00-bolide.ini
    grep -qs "${extensions[-1]}" "$ini" ||
        sid_as_root sh -c 'echo "extension_dir = $1" >$2' sh "${extensions[-1]}" "$ini"
    wrap lsphp "/usr/bin/lsphp$version" "PHPRC='$etc' PHP_INI_SCAN_DIR='$etc/conf.d'"
}

# The theme that belongs to the release's WordPress.
wordpress_theme() {
    apt-cache depends wordpress 2>/dev/null | awk '/: wordpress-theme-/ && !n++ { print $2 }' | grep . ||
        echo wordpress-theme-twentytwentythree
}

setup_test() {
    apt_need curl wrk nghttp2-client openssl valgrind chromium
    # They read the man pages, completions and packages.
    apt_need apache2 mandoc zsh fish lintian rpm systemd
    bookworm_root
    sid_clean_root
    # WordPress's package wants php and a web server of Debian's; none is started.
    apt_need php-fpm php php-cli php-mysql php-gd php-xml php-mbstring php-curl php-zip php-intl \
        nginx-light mariadb-server memcached wordpress "$(wordpress_theme)"
    setup_lab
    h2spec
    pebble
    h2load_h3
    sid_need curl nginx php-litespeed php-mysql prometheus valkey-server
    wrap curl-h3 /usr/bin/curl
    wrap nginx-sid /usr/sbin/nginx
    wrap prometheus /usr/bin/prometheus
    wrap promtool /usr/bin/promtool
    wrap valkey-server /usr/bin/valkey-server
    wrap valkey-cli /usr/bin/valkey-cli
    lsphp
}

# ---- peers ---------------------------------------------------------------

setup_peers() {
    apt_need h2o
    sid_need nginx libnginx-mod-http-brotli-filter libnginx-mod-http-brotli-static caddy \
        haproxy vinyl-cache hitch
    wrap nginx-sid /usr/sbin/nginx
    wrap caddy-sid /usr/bin/caddy
    wrap haproxy-sid /usr/sbin/haproxy
    wrap vinyld-sid /usr/sbin/vinyld
    wrap hitch-sid /usr/sbin/hitch
}

for w in $WHAT; do
    case $w in
    build | lab | test | peers) ;;
    *) die "unknown: $w" "usage: $SELF [build|lab|test|peers]..." ;;
    esac
done
for w in $WHAT; do
    SECONDS=0
    "setup_$w"
    say "$w: ready (${SECONDS} s)"
done
