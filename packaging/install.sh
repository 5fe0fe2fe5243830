#!/bin/sh
# Puts the files of this directory where they belong, below DESTDIR if that is set. A configuration
# that is there stays as it is.
set -e

cd "$(dirname "$0")"
if [ -z "$DESTDIR" ] && [ "$(id -u)" != 0 ]; then
	echo "install.sh: this needs root's rights, or a DESTDIR to install to" >&2
	exit 1
fi
find usr etc -type f | while IFS= read -r file; do
	case $file in etc/*) [ ! -e "$DESTDIR/$file" ] || continue ;; esac
	mode=644
	[ ! -x "$file" ] || mode=755
	install -D -m "$mode" "$file" "$DESTDIR/$file"
done
install -d "$DESTDIR/etc/bolide/sites-available" "$DESTDIR/etc/bolide/sites-enabled"

if [ -n "$DESTDIR" ]; then
	echo "installed to $DESTDIR; there: systemd-sysusers, systemd-tmpfiles --create"
elif [ -d /run/systemd/system ]; then
	systemd-sysusers bolide.conf
	systemd-tmpfiles --create bolide.conf
	systemctl daemon-reload
	echo "installed; start it with: systemctl enable --now bolide"
else
	echo "installed; the account bolide and the directories of /usr/lib/tmpfiles.d/bolide.conf are yours to make"
fi
