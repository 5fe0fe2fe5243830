"""Owns the getting of peers and tools: a Debian root of their own, started without a chroot.

Debian's newest suite is unpacked below the tools directory by debootstrap; small scripts in
`bin/` start its programs with its own loader and libraries, so nothing stays mounted and no
namespace is needed to use them. Needs root for the root's making, and says so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bolide_lab import machine

SID = machine.TOOLS / "sid"
BIN = machine.TOOLS / "bin"
MIRROR = "BOLIDE_DEBIAN_MIRROR"

SETUP = """
printf '#!/bin/sh\\nexit 101\\n' >/usr/sbin/policy-rc.d; chmod 755 /usr/sbin/policy-rc.d
printf 'deb %s sid main\\ndeb-src %s sid main\\n' "$1" "$1" >/etc/apt/sources.list
printf '%s\\n' 'APT::Install-Recommends "false";' 'APT::Sandbox::User "root";' \
    'Acquire::Check-Valid-Until "false";' 'Acquire::Languages "none";' >/etc/apt/apt.conf.d/99lab
echo force-unsafe-io >/etc/dpkg/dpkg.cfg.d/lab
apt-get -q update
touch /.ready
"""
ENTER = """
root=$1; shift
for m in proc sys dev; do mount --rbind /$m "$root/$m"; done
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
exec chroot "$root" "$@"
"""
INSTALL = 'i="apt-get install -y -q"; $i "$@" </dev/null || { apt-get -q update && $i "$@"; }'
# On the host a package of a server must not start its service.
HOST = """
rc=/usr/sbin/policy-rc.d
if [ ! -e $rc ]; then
    trap "rm -f $rc" EXIT
    printf '#!/bin/sh\\nexit 101\\n' >$rc && chmod 755 $rc
fi
export DEBIAN_FRONTEND=noninteractive
apt="apt-get -y -q -o DPkg::Lock::Timeout=600"
i="$apt install --no-install-recommends"
$i "$@" </dev/null || { $apt update && $i "$@" </dev/null; }
"""
BUILD = """
rm -rf /usr/local/src/h2load && mkdir -p /usr/local/src/h2load && cd /usr/local/src/h2load
apt-get -q source --tar-only nghttp2
tar xf nghttp2_*.orig.tar.*z && cd nghttp2-*/
export CFLAGS=-O2 CXXFLAGS=-O2
./configure -q --enable-app --enable-http3 --disable-shared --enable-static \
    --disable-hpack-tools --without-libxml2 --without-systemd --without-jansson --without-jemalloc
for d in lib third-party; do make -s -j"$(nproc)" -C $d; done
make -s -j"$(nproc)" -C src h2load
install -m755 src/h2load /usr/local/bin/h2load-h3
rm -rf /usr/local/src/h2load
"""
BUILD_PACKAGES = (
    "build-essential dpkg-dev pkgconf libngtcp2-dev libngtcp2-crypto-ossl-dev libnghttp3-dev "
    "libssl-dev libev-dev libc-ares-dev zlib1g-dev"
)


@dataclass(frozen=True)
class Peer:
    """A program of the root: its packages, its place there, and the name of its starter."""

    name: str
    packages: tuple[str, ...]
    program: str
    starter: str


PEERS = (
    Peer(
        "nginx",
        ("nginx", "libnginx-mod-http-brotli-filter", "libnginx-mod-http-brotli-static"),
        "/usr/sbin/nginx",
        "nginx-sid",
    ),
    Peer("apache", ("apache2",), "/usr/sbin/apache2", "apache2-sid"),
    Peer("caddy", ("caddy",), "/usr/bin/caddy", "caddy-sid"),
    Peer("haproxy", ("haproxy",), "/usr/sbin/haproxy", "haproxy-sid"),
    Peer("vinyl", ("vinyl-cache",), "/usr/sbin/vinyld", "vinyld-sid"),
    Peer("hitch", ("hitch",), "/usr/sbin/hitch", "hitch-sid"),
    Peer(
        "lighttpd",
        ("lighttpd", "lighttpd-mod-openssl", "lighttpd-mod-deflate"),
        "/usr/sbin/lighttpd",
        "lighttpd-sid",
    ),
)
TOOLS = (
    Peer("curl", ("curl",), "/usr/bin/curl", "curl-h3"),
    Peer("siege", ("siege",), "/usr/bin/siege", "siege-sid"),
)
HOST_PACKAGES = {"h2o": "h2o", "wrk": "wrk", "openssl": "openssl"}


class InstallError(Exception):
    """Something could not be had; the text says what and what to do about it."""


def status(peers: tuple[Peer, ...]) -> list[tuple[str, Path | None]]:
    """Each peer and the program that would be used for it."""
    return [(p.name, machine.find(p.starter, Path(p.program).name)) for p in peers]


def install_peers(say: Callable[[str], None]) -> list[str]:
    """Installs all peers; the errors of those that failed, the others are there."""
    return _host(("h2o",), say) + _each(PEERS, say)


def install_tools(say: Callable[[str], None]) -> list[str]:
    """Installs wrk, curl and siege, and builds h2load with HTTP/3; the errors."""
    errors = _host(("wrk", "openssl"), say) + _each(TOOLS, say)
    try:
        _h2load(say)
    except InstallError as error:
        errors.append(str(error))
    return errors


def _each(peers: tuple[Peer, ...], say: Callable[[str], None]) -> list[str]:
    errors = []
    try:
        _root(say)
    except InstallError as error:
        return [str(error)]
    for peer in peers:
        try:
            _need(peer.packages, say)
            wrap(peer.starter, peer.program)
            say(f"{peer.name}: {BIN / peer.starter}")
        except InstallError as error:
            errors.append(f"{peer.name}: {error}")
    return errors


def _host(names: tuple[str, ...], say: Callable[[str], None]) -> list[str]:
    errors = []
    for name in names:
        if machine.find(name):
            continue
        package = HOST_PACKAGES[name]
        say(f"installing {package}")
        try:
            _apt(package)
            # Nor may it start with the machine.
            if name == "h2o" and shutil.which("systemctl"):
                _run(["systemctl", "disable", package])
        except InstallError as error:
            errors.append(f"{name}: {error}; run: apt-get install {package}")
    return errors


def _apt(*packages: str) -> None:
    """Installs packages of the host's own distribution."""
    _needs_root()
    if not shutil.which("apt-get"):
        raise InstallError("no apt-get here: this knows Debian and Ubuntu")
    _run(["sh", "-ec", HOST, "sh", *packages])


def _root(say: Callable[[str], None]) -> None:
    if (SID / ".ready").exists():
        return
    _needs_root()
    if not machine.find("debootstrap"):
        say("installing debootstrap")
        try:
            _apt("debootstrap", "debian-archive-keyring")
        except InstallError as error:
            how = "run: apt-get install debootstrap debian-archive-keyring"
            raise InstallError(f"missing: debootstrap: {error}; {how}") from error
    mirror = _mirror()
    say(f"making a Debian root in {SID}")
    shutil.rmtree(SID, ignore_errors=True)
    machine.TOOLS.mkdir(parents=True, exist_ok=True)
    argv = ["debootstrap", "--variant=minbase", "--include=ca-certificates", "sid", str(SID)]
    _run(["unshare", "--mount", "--propagation", "private", *argv, mirror])
    _inside(["sh", "-ec", SETUP, "sh", mirror])


def _mirror() -> str:
    """The archive that this host's apt uses, or the one in the environment."""
    own = os.environ.get(MIRROR)
    if own:
        return own
    argv = ["apt-get", "indextargets", "--format", "$(ORIGIN) $(LABEL) $(SITE)"]
    for line in _run([*argv, "Created-By: Packages"]).splitlines():
        words = line.split()
        if words[:2] == ["Debian", "Debian"]:
            return words[2]
    raise InstallError(f"missing: a Debian archive in apt's sources; set {MIRROR} to one")


def _need(packages: tuple[str, ...], say: Callable[[str], None]) -> None:
    dpkg = SID / "var/lib/dpkg/status"
    known = dpkg.read_text(errors="replace").splitlines() if dpkg.exists() else []
    missing = [p for p in packages if f"Package: {p}" not in known]
    if not missing:
        return
    _needs_root()
    say(f"installing in the Debian root: {' '.join(missing)}")
    _inside(["sh", "-c", INSTALL, "sh", *missing])


def _h2load(say: Callable[[str], None]) -> None:
    if not (SID / "usr/local/bin/h2load-h3").exists():
        _need(tuple(BUILD_PACKAGES.split()), say)
        say("building h2load with HTTP/3, some minutes")
        _needs_root()
        _inside(["bash", "-ec", BUILD])
    wrap("h2load-h3", "/usr/local/bin/h2load-h3")


def wrap(starter: str, program: str) -> None:
    """Writes the script that starts a program of the root with the root's libraries."""
    loaders = sorted(SID.glob("usr/lib/*/ld-linux-*.so.[0-9]"))
    if not loaders or not (SID / program.lstrip("/")).exists():
        raise InstallError(f"{program} is not in {SID}")
    loader = loaders[0]
    BIN.mkdir(parents=True, exist_ok=True)
    new = BIN / f"{starter}.new"
    new.write_text(
        f"#!/bin/sh\n\nexec '{loader}' --library-path '{loader.parent}' "
        f"--argv0 '{starter}' '{SID}{program}' \"$@\"\n"
    )
    new.chmod(0o755)
    new.rename(BIN / starter)


def _inside(argv: list[str]) -> str:
    """Runs in the root; the mounts are a namespace's own and end with the command."""
    _needs_root()
    words = ["env", "-u", "LD_LIBRARY_PATH", "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive"]
    words.append("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
    unshare = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", ENTER, "sh"]
    return _run([*unshare, str(SID), *words, *argv])


def _needs_root() -> None:
    if os.geteuid() != 0:
        raise InstallError("needs root: run it again with sudo")


def _run(argv: list[str]) -> str:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except OSError as error:
        raise InstallError(f"{argv[0]}: {error}") from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        last = said[-1] if said else f"exit {done.returncode}"
        machine.TOOLS.mkdir(parents=True, exist_ok=True)
        log = machine.TOOLS / "lab-install.log"
        log.write_text(f"{done.stdout}\n{done.stderr}", encoding="utf-8")
        raise InstallError(f"{argv[0]} failed (offline?): {last}; see {log}")
    return done.stdout
