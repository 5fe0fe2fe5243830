#!/usr/bin/env bash
# Owns: the life of the service below a real systemd, which is process 1 of a Debian 12 of its own:
# started with all its limits, reloaded, upgraded under requests, given up by the watchdog and started
# again, activated by its socket, and with root's rights as docs/install.md has them.
#
#   below_systemd.sh ROOT DEB
#     ROOT  a Debian 12 root with systemd, dbus, curl, nginx and adduser; it is not changed
#     DEB   the package
#
# Needs root and cgroup2; all that it starts is gone when it ends. Each line that it prints is
# something that held.
set -euo pipefail

fail() { printf 'failed: %s\n' "$@" >&2; exit 1; }
here=$(cd "$(dirname "$0")" && pwd)

# ---- process 1 ----

if [ "${1:-}" = --boot ]; then
    scratch=$2/machine lower=$3 deb=$4 root=$2/machine/root
    mount -t tmpfs tmpfs "$scratch"
    mkdir "$scratch"/{upper,work,root}
    mount -t overlay overlay -o "lowerdir=$lower,upperdir=$scratch/upper,workdir=$scratch/work" "$root"
    mount -t proc proc "$root/proc"
    mount -t sysfs -o ro sysfs "$root/sys"
    mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
    mount -t tmpfs tmpfs "$root/run"
    mount -t tmpfs tmpfs "$root/tmp"
    mount -t tmpfs -o mode=755 tmpfs "$root/dev"
    for node in null:1:3 zero:1:5 full:1:7 random:1:8 urandom:1:9 tty:5:0; do
        IFS=: read -r name major minor <<<"$node"
        mknod -m 666 "$root/dev/$name" c "$major" "$minor"
    done
    mkdir "$root/dev/pts" "$root/dev/shm" "$root/old"
    mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
    ln -s pts/ptmx "$root/dev/ptmx"
    ln -s /proc/self/fd "$root/dev/fd"
    cp "$deb" "$root/root/bolide.deb"
    cd "$root"
    pivot_root . old
    cd /
    # Bash reads this file up to here only.
    exec /bin/sh -c 'umount -l /old && rmdir /old && container=test exec /lib/systemd/systemd'
fi

[ "$(id -u)" = 0 ] || fail "this test makes mounts and namespaces: run it as root"

# Mounts that no other process sees, and a directory that goes with them.
if [ "${1:-}" != --alone ]; then
    [ $# = 2 ] || fail "usage: below_systemd.sh ROOT DEB"
    scratch=$(mktemp -d)
    trap 'rm -rf --one-file-system "$scratch"' EXIT
    mkdir "$scratch"/{groups,machine}
    unshare --mount --propagation private bash "$0" --alone "$scratch" "$@"
    exit
fi
scratch=$2
shift 2
groups=$scratch/groups
mount -t cgroup2 cgroup2 "$groups" || fail "cgroup2 cannot be mounted, which systemd needs"
group=$groups/bolide-test-$$
mkdir "$group"
bash -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' bash "$group" \
    unshare --mount --net --pid --ipc --uts --cgroup --fork --kill-child --propagation private \
    bash "$0" --boot "$scratch" "$@" >"$scratch/log" 2>&1 </dev/null &
unshared=$!
end() {
    kill -KILL "$unshared" 2>/dev/null || true
    wait "$unshared" 2>/dev/null || true
    for _ in $(seq 100); do
        find "$group" -depth -type d -exec rmdir {} + 2>/dev/null && break
        sleep 0.1
    done
}
trap end EXIT

# until_true WHAT COMMAND...
until_true() {
    local what=$1 n; shift
    for ((n = 0; n < 600; n++)); do "$@" && return; sleep 0.1; done
    inside journalctl --no-pager -n 30 >&2 || true
    fail "waited a minute in vain for: $what"
}
init=
has_init() { init=$(pgrep -P "$unshared" -x systemd); }
until_true "systemd as process 1 ($(cat "$scratch/log"))" has_init
inside() {
    nsenter -t "$init" --mount --net --pid --ipc --uts --cgroup --root --wdns=/ /usr/bin/env -i \
        PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C DEBIAN_FRONTEND=noninteractive "$@"
}
is_up() { inside systemctl is-system-running 2>/dev/null | grep -qE 'running|degraded'; }
until_true "a system that runs" is_up
of() { inside systemctl show bolide -p "$1" --value; }
is() { [ "$(of "$1")" = "$2" ]; }
answers() { inside curl -sf --max-time 20 -o /dev/null http://127.0.0.1/; }
# says PATH TEXT: the second server answers it
says() { [ "$(inside curl -s --max-time 20 -H 'Host: second' "http://127.0.0.1$1")" = "$2" ]; }
write() { inside sh -c "mkdir -p '$(dirname "$1")' && cat >'$1'"; }
# The process of the machine that has this number inside.
outside() { grep -lE "^NSpid:.*[[:space:]]$1\$" /proc/[0-9]*/status 2>/dev/null | cut -d/ -f3 | head -n 1; }

# ---- the unit ----

inside systemctl mask --quiet nginx.service
inside systemctl stop nginx.service
inside apt-get install -q -y --no-install-recommends /root/bolide.deb >"$scratch/log" 2>&1 ||
    { cat "$scratch/log" >&2; fail "apt-get install"; }
is ActiveState active && is StatusText Serving || fail "$(inside systemctl status bolide --no-pager)"
answers || fail "no answer"
[ "$(inside stat -c %U "/proc/$(of MainPID)")" = bolide ] || fail "another account"
echo "apt starts the service, and systemd knows from it that it serves"

write /etc/bolide/sites-enabled/second <<'END'
server {
    listen 80;
    server_name second;
    location ~ ^/(?<word>[a-z]+)\.php$ { return 200 $word; }
    location / { return 200 $pid; }
}
END
inside systemctl reload bolide
until_true "an expression" says /page.php page
echo nonsense | write /etc/bolide/sites-enabled/third
! inside systemctl reload bolide 2>/dev/null || fail "a fault is no error"
inside rm /etc/bolide/sites-enabled/third
is ActiveState active && says /page.php page || fail "the old configuration is gone"
echo "systemctl reload puts a site in force below all limits of the unit, and refuses a fault"

# ---- upgraded, restarted ----

# asking SECONDS...: asks until `asked` is called, which says how many requests and how many failed
asking() {
    inside sh -c 'touch /run/asking; asked=0 failed=0
        while [ -e /run/asking ]; do
            asked=$((asked + 1))
            curl -sf --max-time 20 -o /dev/null http://127.0.0.1/ || failed=$((failed + 1))
            echo $asked >/run/asked.new && mv /run/asked.new /run/asked
        done
        echo "$asked $failed"' >"$scratch/asked" &
    asker=$!
    more_asked
}
more_asked() {
    local count; count=$(inside cat /run/asked 2>/dev/null || echo 0)
    has_more() { [ "$(inside cat /run/asked 2>/dev/null || echo 0)" -gt $((count + 5)) ]; }
    until_true "requests" has_more
}
none_is_lost() {
    more_asked
    inside rm /run/asking
    wait $asker
    local asked failed; read -r asked failed <"$scratch/asked"
    [ "$failed" = 0 ] || fail "$failed of $asked requests were lost during $1"
}
main=$(of MainPID)
asking
inside dpkg -i /root/bolide.deb >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; fail "dpkg -i"; }
is_another() { ! is MainPID "$main" && ! is MainPID 0; }
until_true "another main process" is_another
none_is_lost "an upgrade"
until_true "the end of the old process" inside sh -c "! kill -0 $main 2>/dev/null"
is ActiveState active && says / "$(of MainPID)" || fail "$(inside systemctl status bolide --no-pager)"
is NRestarts 0 || fail "systemd started it again"
echo "an upgrade loses no request, and systemd follows it to the new main process"

inside systemctl stop bolide
! answers || fail "it still answers"
is Result success || fail "it was killed: $(inside systemctl status bolide --no-pager)"
inside systemctl start bolide.socket
is ActiveState inactive || fail "it runs without a request: $(inside systemctl status bolide bolide.socket --no-pager)"
answers || fail "no answer from the socket"
is ActiveState active || fail "the request did not start it"
asking
inside systemctl restart bolide
none_is_lost "a restart with bolide.socket"
inside systemctl stop bolide.socket bolide.service
echo "bolide.socket starts the service by a request, and a restart below it loses none"

# ---- watched ----

printf '[Service]\nWatchdogSec=2\n' | write /etc/systemd/system/bolide.service.d/test.conf
printf 'worker_processes 1;\n' | inside sh -c \
    'sed -i "s/^worker_processes.*//" /etc/bolide/bolide.conf; sed -i "1i worker_processes 1;" /etc/bolide/bolide.conf'
inside systemctl daemon-reload
inside systemctl start bolide
python=${BOLIDE_TOOLS:-$HOME/.cache/bolide-tools}/venv/bin/python
coproc holder { "$python" "$here/../standstill.py" "$(outside "$(of MainPID)")" worker-0; }
( while kill -0 "$holder_PID" 2>/dev/null; do answers || true; sleep 0.1; done ) &
read -r held <&"${holder[0]}"
[ "$held" = held ] || fail "the worker cannot be held: $held"
was_watched() { is NRestarts 1 && is ActiveState active; }
until_true "the service, started again" was_watched
inside journalctl --no-pager -u bolide | grep -q 'Watchdog timeout' || fail "it was not the watchdog"
until_true "an answer" answers
echo "a worker that stands ends the signs of life, and systemd starts the service again"

# ---- with root's rights ----

awk '/^ *```ini/{ on = 1; next } /^ *```/{ on = 0 } on' "$here/../../docs/install.md" |
    write /etc/systemd/system/bolide.service.d/test.conf
inside systemctl daemon-reload
inside systemctl restart bolide
until_true "an answer" answers
main=$(of MainPID)
inside sh -c "grep -H ^Uid: /proc/$main/task/*/status" >"$scratch/log"
[ "$(inside stat -c %U "/proc/$main")" = root ] || fail "the control thread is not root"
bolide=$(inside id -u bolide)
workers=$(grep -c "Uid:.$bolide.$bolide.$bolide.$bolide" "$scratch/log") || fail "workers are root"
[ "$workers" -ge 1 ] || fail "workers are root"
echo "docs/install.md gives the control thread root's rights, and workers have none"

inside apt-get purge -q -y bolide >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; fail "apt-get purge"; }
! answers || fail "it still answers"
[ "$(of LoadState)" = not-found ] || fail "the unit is left"
echo "apt purge ends the service and takes the unit away"
