#!/usr/bin/env bash
# Owns: the image for containers, run as containers are: another account without any capability, a root
# that cannot be written to, a tmpfs at /tmp.
#
#   image.sh IMAGE      (as root)
set -euo pipefail

fail() { printf 'failed: %s\n' "$@" >&2; exit 1; }

if [ "${1:-}" != --inside ]; then
    [ "$(id -u)" = 0 ] || fail "this test makes mounts and namespaces: run it as root"
    [ $# = 1 ] || fail "usage: image.sh IMAGE"
    scratch=$(mktemp -d)
    trap 'rm -rf --one-file-system "$scratch"' EXIT
    unshare --mount --net --pid --ipc --uts --fork --kill-child --propagation private \
        bash "$0" --inside "$scratch" "$@"
    exit
fi
scratch=$2 image=$3

# Every blob has the digest that names it, and the layer is found as a runtime finds it.
mkdir "$scratch/layout" "$scratch/root"
tar -xf "$image" -C "$scratch/layout"
cd "$scratch/layout"
(cd blobs/sha256 && for blob in *; do echo "$blob  $blob"; done | sha256sum --check --quiet --strict)
field() { python3 -c 'import json, sys; one = json.load(open(sys.argv[1]))
for key in sys.argv[2:]: one = one[int(key) if key.isdigit() else key]
print(one)' "$@"; }
blob() { echo "blobs/sha256/${1#sha256:}"; }
manifest=$(blob "$(field index.json manifests 0 digest)")
config=$(blob "$(field "$manifest" config digest)")
layer=$(blob "$(field "$manifest" layers 0 digest)")
[ "sha256:$(gzip -dc "$layer" | sha256sum | cut -d' ' -f1)" = "$(field "$config" rootfs diff_ids 0)" ] ||
    fail "another layer than the configuration names"
user=$(field "$config" config User)
[ "${user%:*}" != 0 ] || fail "it runs as root"
entry=()
for n in 0 1 2 3 4; do entry+=("$(field "$config" config Entrypoint $n)"); done
echo "the layout holds together, and the image names an account that is not root"

root=$scratch/root
tar -xzf "$layer" -C "$root"
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
python3 - <<'END'
import fcntl, socket, struct
# SIOCSIFFLAGS: the loopback goes up.
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh14x", b"lo", 1))
END
# chroot wants a right that the server has not, so the account changes behind it.
as_user() {
    python3 -c 'import ctypes, os, sys
uid, gid = map(int, sys.argv[2].split(":"))
os.chroot(sys.argv[1]); os.chdir("/")
os.setgroups([]); os.setgid(gid); os.setuid(uid)
ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)
os.execve(sys.argv[3], sys.argv[3:], {})' "$root" "$user" "$@"
}
# Runtimes give a container's output to its account.
touch "$scratch/said"
chown "$user" "$scratch/said"
as_user "${entry[@]}" >>"$scratch/said" 2>&1 &
server=$!
n=0
until curl -sf --max-time 10 -o "$scratch/page" http://127.0.0.1:8080/; do
    kill -0 $server 2>/dev/null || fail "it does not start: $(cat "$scratch/said")"
    n=$((n + 1))
    [ $n -lt 600 ] || fail "no answer in a minute: $(cat "$scratch/said")"
    sleep 0.1
done
grep -q 'Welcome to Bolide' "$scratch/page" || fail "not the page of welcome"
until grep -q '"GET / HTTP/1.1" 200' "$scratch/said"; do sleep 0.1; done
echo "it serves without root on a root that cannot be written to, and logs to its output"

as_user /usr/sbin/bolide status >"$scratch/status" || fail "bolide status: $(cat "$scratch/status")"
kill -QUIT "$(cat "$root/tmp/bolide.pid")"
wait $server || fail "it ends with $?"
! as_user /usr/sbin/bolide status >"$scratch/status" 2>&1 || fail "a dead server is in good health"
echo "bolide status is a check of health, and SIGQUIT ends it"
