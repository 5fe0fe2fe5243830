"""Owns the processes behind a dynamic site: php-fpm, MariaDB, and an origin that speaks HTTP.

Each has a directory and sockets of its own and is ended with its site. Nothing of the system's own
services is touched.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from bolide_lab.sites.base import SiteError

START_LIMIT_S = 60.0
# Plain values for every site, the same for each server.
INI = {
    "cgi.fix_pathinfo": "0",
    "display_errors": "0",
    "expose_php": "0",
    "memory_limit": "256M",
    "sendmail_path": "/bin/true",
    "date.timezone": "UTC",
    "opcache.validate_timestamps": "0",
}


def program(names: Sequence[str], package: str) -> str:
    """The first of the programs that is there."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/libexec"
    for name in names:
        found = shutil.which(name, path=path)
        if found:
            return found
    raise SiteError(f"missing: {names[0]}; run: apt-get install {package}")


class Service(ABC):
    """A process with its children in a directory of its own."""

    name: str

    def __init__(self, directory: Path, prefix: Sequence[str] = ()) -> None:
        """`prefix` runs the command elsewhere: on a core, in a namespace."""
        self.directory = directory
        self.prefix = tuple(prefix)
        self.process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def argv(self) -> list[str]:
        """The command that stays in the foreground; its files are written first."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Whether it answers."""

    def start(self) -> None:
        """Starts it and waits until it answers."""
        self.directory.mkdir(parents=True, exist_ok=True)
        log = self.directory / f"{self.name}.log"
        with log.open("ab") as said:
            self.process = subprocess.Popen(
                [*self.prefix, *self.argv()],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
        until = time.monotonic() + START_LIMIT_S
        while not self.is_ready():
            if self.process.poll() is not None or time.monotonic() > until:
                self.stop()
                tail = log.read_text(errors="replace")[-600:].strip()
                raise SiteError(f"{self.name} does not start: {tail}")
            time.sleep(0.02)

    def stop(self) -> None:
        """Ends it and its children; a second call does nothing."""
        process, self.process = self.process, None
        if process is None:
            return
        for how in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, how)
                process.wait(timeout=10)
            except ProcessLookupError:
                process.wait()
            except subprocess.TimeoutExpired:
                continue
            break

    def pids(self) -> list[int]:
        """The process whose descendants do the work."""
        return [self.process.pid] if self.process else []


class Fpm(Service):
    """php-fpm with a fixed number of children on a unix socket."""

    name = "php-fpm"

    def __init__(self, directory: Path, children: int = 5, prefix: Sequence[str] = ()) -> None:
        """Five children are those of the shop experiment."""
        super().__init__(directory, prefix)
        self.children = children
        self.socket = directory / "php.sock"

    def program(self) -> str:
        """Debian names the program after its version: the newest."""
        found = sorted(Path("/usr/sbin").glob("php-fpm*"))
        return str(found[-1]) if found else program(["php-fpm"], "php-fpm php-mysql")

    def configuration(self) -> str:
        """The pool."""
        lines = ["[global]", "error_log = /proc/self/fd/2", "daemonize = no", "[www]"]
        lines += [f"listen = {self.socket}", "listen.backlog = 4096", "listen.mode = 0666"]
        lines += ["pm = static", f"pm.max_children = {self.children}", "clear_env = yes"]
        lines += ["user = root", "group = root"] if os.geteuid() == 0 else []
        lines += [f"php_admin_value[{name}] = {value}" for name, value in INI.items()]
        return "\n".join(lines) + "\n"

    def argv(self) -> list[str]:
        """In the foreground; as root only where the laboratory is root."""
        path = self.directory / "fpm.conf"
        path.write_text(self.configuration())
        self.socket.unlink(missing_ok=True)
        return [self.program(), "-F", "-O", *(["-R"] if os.geteuid() == 0 else []), "-y", str(path)]

    def is_ready(self) -> bool:
        """The socket is there as soon as it listens."""
        return self.socket.exists()

    def version(self) -> str:
        """Of PHP."""
        said = subprocess.run([self.program(), "-v"], capture_output=True, text=True, check=False)
        return said.stdout.partition("\n")[0]


class MariaDb(Service):
    """A MariaDB without a network, on a private socket."""

    name = "mariadb"

    def __init__(self, directory: Path, prefix: Sequence[str] = ()) -> None:
        """An empty database directory is made on the first start."""
        super().__init__(directory, prefix)
        self.socket = directory / "sql.sock"

    def _user(self) -> list[str]:
        return ["--user=root"] if os.geteuid() == 0 else []

    def argv(self) -> list[str]:
        """The server."""
        data = self.directory / "data"
        if not data.exists():
            install = [program(["mariadb-install-db"], "mariadb-server"), "--no-defaults"]
            install += ["--auth-root-authentication-method=normal", "--skip-test-db"]
            install += ["--innodb-use-native-aio=0", "--innodb-log-file-size=8M"]
            done = subprocess.run(
                [*install, *self._user(), f"--datadir={data}"], capture_output=True, check=False
            )
            if done.returncode:
                raise SiteError(f"mariadb-install-db: {done.stderr.decode(errors='replace')}")
        command = [program(["mariadbd", "mysqld"], "mariadb-server"), "--no-defaults"]
        command += ["--skip-networking", "--skip-log-bin", "--innodb-use-native-aio=0"]
        command += ["--innodb-log-file-size=8M", "--innodb-flush-log-at-trx-commit=2"]
        command += [f"--pid-file={self.directory}/pid", f"--socket={self.socket}"]
        return [*command, *self._user(), f"--datadir={data}"]

    def is_ready(self) -> bool:
        """Whether it answers a query."""
        return self.query("select 1").returncode == 0

    def query(self, statements: str) -> subprocess.CompletedProcess[str]:
        """What the client says."""
        argv = [program(["mariadb", "mysql"], "mariadb-client"), "--no-defaults", "-u", "root"]
        argv += [f"--socket={self.socket}", "-N", "-B", "-e", statements]
        return subprocess.run(argv, capture_output=True, text=True, check=False)

    def sql(self, statements: str) -> str:
        """What statements print; `SiteError` when one fails."""
        done = self.query(statements)
        if done.returncode:
            raise SiteError(f"mariadb: {done.stderr.strip()}")
        return done.stdout


class Origin(Service):
    """nginx without a cache, for caches that ask by HTTP: HAProxy and Vinyl."""

    name = "origin"

    def __init__(
        self,
        directory: Path,
        root: Path,
        php: Path,
        port: int,
        prefix: Sequence[str] = (),
    ) -> None:
        """On 127.0.0.1 of the namespace that `prefix` runs it in."""
        super().__init__(directory, prefix)
        self.root, self.php, self.port = root, php, port

    def configuration(self) -> str:
        """Files, and a front controller for all else."""
        names = {
            "SCRIPT_FILENAME": "$document_root$fastcgi_script_name",
            "QUERY_STRING": "$query_string",
            "REQUEST_METHOD": "$request_method",
            "CONTENT_TYPE": "$content_type",
            "CONTENT_LENGTH": "$content_length",
            "SCRIPT_NAME": "$fastcgi_script_name",
            "REQUEST_URI": "$request_uri",
            "DOCUMENT_ROOT": "$document_root",
            "SERVER_PROTOCOL": "$server_protocol",
            "SERVER_NAME": "$host",
            "SERVER_PORT": "$server_port",
            "REMOTE_ADDR": "$remote_addr",
            "REDIRECT_STATUS": "200",
        }
        params = "\n".join(f"   fastcgi_param {name} {value};" for name, value in names.items())
        user = "user root;\n" if os.geteuid() == 0 else ""
        run = self.directory
        return f"""{user}worker_processes 1;
daemon off;
pid {run}/origin.pid;
error_log {run}/origin-error.log warn;
events {{ worker_connections 4096; }}
http {{
 types {{ text/html html; text/css css; text/javascript js; image/jpeg jpg; image/png png;
         image/svg+xml svg; }}
 access_log off;
 keepalive_requests 1000000000;
 client_body_temp_path {run}/bodies;
 fastcgi_temp_path {run}/fastcgi;
 proxy_temp_path {run}/proxy;
 uwsgi_temp_path {run}/uwsgi;
 scgi_temp_path {run}/scgi;
 server {{
  listen 127.0.0.1:{self.port};
  root {self.root};
  index index.php;
  location /static/ {{ add_header Cache-Control "public, max-age=86400"; }}
  location /media/ {{ add_header Cache-Control "public, max-age=86400"; }}
  location / {{ try_files $uri $uri/ /index.php?$args; }}
  location ~ \\.php$ {{
   try_files $uri =404;
   fastcgi_pass unix:{self.php};
{params}
  }}
 }}
}}
"""

    def argv(self) -> list[str]:
        """The laboratory's nginx, else the system's."""
        path = self.directory / "origin.conf"
        path.write_text(self.configuration())
        tools = Path(os.environ.get("BOLIDE_TOOLS", Path.home() / ".cache/bolide-tools")) / "bin"
        return [program([str(tools / "nginx-sid"), "nginx"], "nginx-light"), "-c", str(path)]

    def is_ready(self) -> bool:
        """The process's file is written once it listens."""
        path = self.directory / "origin.pid"
        return path.exists() and path.read_text().strip() != ""
