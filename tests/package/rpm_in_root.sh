#!/usr/bin/env bash
# Owns: the life of the RPM package in a root with systemd's tools: installed by rpm with its
# scriptlets, started, upgraded with a hand-over, erased.
#
#   rpm_in_root.sh ROOT RPM
#     ROOT  a Debian 12 root; it is not changed, and its dpkg knows nothing of the package
#     RPM   the package
#
# Needs root and rpm. The root has no database of RPM, so dependencies are left to tests that read them.
# Each line that it prints is something that held.
set -euo pipefail

fail() { printf 'failed: %s\n' "$@" >&2; exit 1; }

if [ "${1:-}" != --inside ]; then
    [ "$(id -u)" = 0 ] || fail "this test makes mounts and namespaces: run it as root"
    [ $# = 2 ] || fail "usage: rpm_in_root.sh ROOT RPM"
    scratch=$(mktemp -d)
    trap 'rmdir "$scratch"' EXIT
    unshare --mount --net --pid --ipc --uts --fork --kill-child --propagation private \
        bash "$0" --inside "$scratch" "$@"
    exit
fi
scratch=$2 lower=$3 package=$4

mount -t tmpfs tmpfs "$scratch"
mkdir "$scratch"/{upper,work,root}
root=$scratch/root
mount -t overlay overlay -o "lowerdir=$lower,upperdir=$scratch/upper,workdir=$scratch/work" "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
chroot "$root" /usr/sbin/ip link set lo up

by_rpm() { rpm --root "$root" --nodeps "$@" >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; fail "rpm $*"; }; }
inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C "$@"; }
answers() { curl -sf --max-time 10 -o /dev/null "http://127.0.0.1/"; }
until_true() {
    local what=$1 n; shift
    for ((n = 0; n < 600; n++)); do "$@" && return; sleep 0.1; done
    fail "waited a minute in vain for: $what"
}
server() { cat "$root/run/bolide/bolide.pid" 2>/dev/null; }

by_rpm --install "$package"
# Debian's rpm says that packages of Debian are better there, and systemd whom it makes.
! grep -Eiq 'error|warning|fail' "$scratch/log" || { cat "$scratch/log" >&2; fail "the scriptlets complain"; }
rpm --root "$root" --nodeps --verify bolide || fail "rpm --verify"
[ "$(inside stat -c %U /var/log/bolide /var/cache/bolide /var/lib/bolide /run/bolide | sort -u)" = bolide ] ||
    fail "not the account's directories"
echo "rpm installs it, and its scriptlets make the account and its directories"

inside setpriv --reuid=bolide --regid=bolide --init-groups --no-new-privs \
    --inh-caps=+net_bind_service --ambient-caps=+net_bind_service \
    /usr/sbin/bolide -e stderr -g 'daemon off;' >"$scratch/served" 2>&1 &
until_true "an answer" answers
old=$(server)
echo '# mine' >>"$root/etc/bolide/bolide.conf"
by_rpm --upgrade --force "$package"
is_another() { [ -n "$(server)" ] && [ "$(server)" != "$old" ]; }
until_true "a successor" is_another
until_true "the end of the old process" test ! -e "$root/proc/$old/exe"
answers || fail "no answer after the upgrade"
grep -qx '# mine' "$root/etc/bolide/bolide.conf" || fail "the configuration was replaced"
echo "an upgrade hands the sockets over and leaves the configuration alone"

last=$(server)
by_rpm --erase bolide
until_true "the end of the server" test ! -e "$root/proc/$last/exe"
[ ! -e "$root/usr/sbin/bolide" ] && [ ! -e "$root/usr/share/bolide" ] || fail "files are left"
[ -e "$root/etc/bolide/bolide.conf.rpmsave" ] || fail "the changed configuration is lost"
echo "rpm --erase ends the server and keeps a changed configuration"
