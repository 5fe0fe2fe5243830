# A server that runs passes its sockets on to the binary of the package that was installed.
pidfile=/run/bolide/bolide.pid

# The process of the pid file, if it is a server of ours.
server() {
	[ -s "$pidfile" ] || return 1
	pid=$(cat "$pidfile") && exe=$(readlink "/proc/$pid/exe") || return 1
	case $exe in /usr/sbin/bolide* | /usr/bin/bolide*) echo "$pid" ;; *) return 1 ;; esac
}

# The new binary takes the sockets over, and the old process ends when it has answered all requests.
hand_over() {
	old=$1
	kill -USR2 "$old" || return 0
	n=0
	while [ $n -lt 100 ]; do
		new=$(server || true)
		if [ -n "$new" ] && [ "$new" != "$old" ]; then
			kill -QUIT "$old" || true
			return 0
		fi
		sleep 0.1
		n=$((n + 1))
	done
	echo "bolide: the new version does not start, the old one goes on; see 'bolide -t'" >&2
}
