#!/usr/bin/env bash
# Owns: the life of the package on a clean Debian 12 or sid: installed beside nginx, started as its unit
# says, asked, reloaded, its logs rotated, upgraded under requests, purged without a trace.
#
#   in_clean_root.sh ROOT DEB
#     ROOT  a Debian root with nginx, logrotate and adduser; it is not changed
#     DEB   the package
#
# Needs root: it mounts, has a network of its own, and is gone with all that it started when it ends.
# Each line that it prints is something that held.
set -euo pipefail

fail() { printf 'failed: %s\n' "$@" >&2; exit 1; }

if [ "${1:-}" != --inside ]; then
    [ "$(id -u)" = 0 ] || fail "this test makes mounts and namespaces: run it as root"
    [ $# = 2 ] || fail "usage: in_clean_root.sh ROOT DEB"
    scratch=$(mktemp -d)
    trap 'rmdir "$scratch"' EXIT
    unshare --mount --net --pid --ipc --uts --fork --kill-child --propagation private \
        bash "$0" --inside "$scratch" "$@"
    exit
fi
scratch=$2 lower=$3 deb=$4

mount -t tmpfs tmpfs "$scratch"
mkdir "$scratch"/{upper,work,root}
root=$scratch/root
mount -t overlay overlay -o "lowerdir=$lower,upperdir=$scratch/upper,workdir=$scratch/work" "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mkdir -p "$root/run/lock" "$root/run/user"
cp "$deb" "$root/run/bolide.deb"
chroot "$root" /usr/sbin/ip link set lo up

inside() {
    chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C \
        DEBIAN_FRONTEND=noninteractive "$@"
}
# What apt, dpkg, logrotate and the accounts' tools keep for themselves is compared by other means.
files() {
    (cd "$root" && find . -xdev -path ./var/lib/dpkg -prune -o -path ./var/lib/apt -prune -o \
        -path ./var/cache/apt -prune -o -path ./var/log/apt -prune -o -path ./var/log/dpkg.log -prune -o \
        -name '*-' -path './etc/*' -prune -o -path ./var/lib/logrotate/status -o -print | sort
        find run -mindepth 1 ! -path run/adduser | sort)
}
answers() { curl -sf --max-time 10 -o "${2:-/dev/null}" "http://127.0.0.1$1"; }
# until_true WHAT COMMAND...
until_true() {
    local what=$1 n; shift
    for ((n = 0; n < 600; n++)); do "$@" && return; sleep 0.1; done
    fail "waited a minute in vain for: $what"
}

# ---- installed ----

files >"$scratch/before"
inside getent passwd >"$scratch/accounts"
inside apt-get install -q -y --no-install-recommends /run/bolide.deb >"$scratch/log" 2>&1 ||
    { cat "$scratch/log" >&2; fail "apt-get install"; }
[ -z "$(inside dpkg --verify bolide nginx nginx-common)" ] || fail "dpkg --verify"
echo "apt installs it beside nginx, and no file belongs to both"

unit=$root/lib/systemd/system/bolide.service
of_unit() { sed -n "s/^$1=//p" "$unit"; }
account=$(of_unit User)
capabilities=$(of_unit AmbientCapabilities | tr A-Z a-z | sed 's/cap_/+/g')
[ "$(of_unit CapabilityBoundingSet)" = "$(of_unit AmbientCapabilities)" ] || fail "bounding set"
# The account, the rights and the limits of the unit, as far as they go without systemd.
as_unit() {
    inside setpriv "--reuid=$account" "--regid=$account" --init-groups --no-new-privs \
        "--inh-caps=$capabilities" "--ambient-caps=$capabilities" \
        "--bounding-set=-all,${capabilities// /,}" \
        sh -c "cd / && umask $(of_unit UMask) && exec $1"
}
as_unit "$(of_unit ExecStart)" >"$scratch/served" 2>&1 &
has_ended() { ! kill -0 $! 2>/dev/null; }
is_decided() { answers / "$scratch/page" || has_ended; }
until_true "an answer" is_decided
! has_ended || fail "it does not start: $(cat "$scratch/served")"
grep -q 'Welcome to Bolide' "$scratch/page" || fail "not the page of welcome"
pid=$(cat "$root/run/bolide/bolide.pid")
[ ! -s "$scratch/served" ] || fail "it complains: $(cat "$scratch/served")"
[ "$(stat -c %U "$root/proc/$pid")" != root ] || fail "it runs as root"
curl -sfg --max-time 10 -o /dev/null 'http://[::1]/' || fail "no answer by IPv6"
echo "the command of the unit serves the page of welcome on port 80 without root's rights"

mkdir -p "$root/var/www/html"
echo mine >"$root/var/www/html/index.html"
answers / "$scratch/page" && grep -qx mine "$scratch/page" || fail "not the index of /var/www/html"
echo "an index in /var/www/html takes the place of the welcome"

# ---- reloaded, rotated ----

echo 'server { listen 80; server_name second; return 200 second; }' >"$root/etc/bolide/sites-enabled/second"
reload() {
    local line
    while IFS= read -r line; do as_unit "$line" || fail "$line"; done < <(of_unit ExecReload)
}
reload
is_second() { [ "$(curl -s --max-time 10 -H 'Host: second' http://127.0.0.1/)" = second ]; }
until_true "the second site" is_second
echo nonsense >"$root/etc/bolide/sites-enabled/third"
as_unit "$(of_unit ExecReload | head -n 1)" 2>"$scratch/said" && fail "a fault is no error"
grep -q 'sites-enabled/third:' "$scratch/said" || fail "the fault is not named: $(cat "$scratch/said")"
rm "$root"/etc/bolide/sites-enabled/{second,third}
echo "the commands of ExecReload put a site in force, and refuse a fault by its file"

inside logrotate --force /etc/logrotate.d/bolide
[ -s "$root/var/log/bolide/access.log.1" ] || fail "no rotated log"
is_logged() { answers /logged || true; grep -q /logged "$root/var/log/bolide/access.log"; }
until_true "a line in the new log" is_logged
echo "logrotate moves the logs, and the server writes to new ones"

# ---- upgraded under requests ----

touch "$scratch/asking"
ask() {
    local asked=0 failed=0
    while [ -e "$scratch/asking" ]; do
        asked=$((asked + 1))
        answers / || failed=$((failed + 1))
        echo "$asked $failed" >"$scratch/asked.$1.new" && mv "$scratch/asked.$1.new" "$scratch/asked.$1"
    done
}
ask 1 & first=$!
ask 2 & second=$!
has_asked() { [ -e "$scratch/asked.$1" ] && [ "$(cut -d' ' -f1 "$scratch/asked.$1")" -ge "$2" ]; }
until_true "requests" has_asked 1 10
inside dpkg -i /run/bolide.deb >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; fail "dpkg -i"; }
successor=$(cat "$root/run/bolide/bolide.pid")
[ "$successor" != "$pid" ] || fail "the old process goes on: $(cat "$scratch/log")"
until_true "the end of the old process" test ! -e "$root/proc/$pid/exe"
asked=$(cut -d' ' -f1 "$scratch/asked.1")
until_true "requests of the new process" has_asked 1 $((asked + 10))
rm "$scratch/asking"
wait $first $second
for n in 1 2; do
    read -r asked failed <"$scratch/asked.$n"
    [ "$failed" = 0 ] || fail "$failed of $asked requests were lost"
done
echo "an upgrade hands the sockets over, and no request is lost"

# ---- purged ----

inside apt-get purge -q -y bolide >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; fail "apt-get purge"; }
! answers / || fail "it still answers"
[ ! -e "$root/proc/$successor/exe" ] || fail "it still runs"
rm -r "$root/var/www/html/index.html"
files | grep -v '^./var/www' >"$scratch/after"
grep -v '^./var/www' "$scratch/before" | diff - "$scratch/after" >&2 || fail "files are left"
inside getent passwd | diff "$scratch/accounts" - >&2 || fail "an account is left"
[ -z "$(inside dpkg-query -W -f='${db:Status-Status}' bolide 2>/dev/null)" ] || fail "dpkg knows it still"
echo "apt purge leaves no process, no file and no account behind"
