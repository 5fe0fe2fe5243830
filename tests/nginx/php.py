"""Owns: the php-fpm that both servers of a comparison use, and the scripts it runs.

Three pools of the same PHP: a and b on unix sockets, c on a TCP port; each tells its name. What the
scripts do, which stand in the directory `php`: `say` answers what it is asked for (?h[]=FIELD,
s=STATUS, b=TEXT, n=BYTES), `zone` also counts how often it ran for its n, and takes arguments with
a 2 at their end from the second run on; `env` leaves out what differs from one request to another.
"""

import os
import shutil
import subprocess
import time
from pathlib import Path

POOL = """[{name}]
listen = {listen}
listen.backlog = 511
listen.mode = 0666
pm = static
pm.max_children = {children}
env[POOL] = {name}
catch_workers_output = yes
php_admin_value[cgi.fix_pathinfo] = 0
php_admin_value[display_errors] = 0
php_admin_value[log_errors] = 1
php_admin_value[html_errors] = 0
php_admin_value[expose_php] = 0
php_admin_value[output_buffering] = 0
php_admin_value[date.timezone] = UTC
php_admin_value[upload_tmp_dir] = {home}/php-tmp
php_admin_value[sys_temp_dir] = {home}/php-tmp
"""

HERE = Path(__file__).with_suffix("")
ENV = (HERE / "env.php").read_text()
SCRIPTS = {script.name: script.read_text() for script in HERE.glob("*.php")} | {
    "index.php": ENV.replace("text/plain')", "text/plain; x=index')"),
    "dir/index.php": ENV,
    "dir/env.php": ENV,
    "wp/index.php": ENV,
    "dot.d/env.php": ENV,
    "with space.php": ENV,
    "env.phtml": ENV,
    "empty.php": "",
    "style.css": "body { color: black }\n",
    "upload.jpg": "<?php echo 'executed';\n",
    "secret/file.txt": "secret file\n",
    "errors/50x.html": "<p>custom 50x</p>\n",
    "errors/404.html": "<p>custom 404</p>\n",
}
MTIME = 1_700_000_000
SNIPPETS = ("fastcgi.conf", "fastcgi_params", "mime.types", "snippets/fastcgi-php.conf")


def find_fpm() -> str:
    """The path of the newest php-fpm."""
    found = sorted(Path("/usr/sbin").glob("php-fpm*"))
    if not found:
        raise SystemExit("missing tool: php-fpm (run scripts/setup.sh test)")
    return str(found[-1])


class Php:
    """The running php-fpm."""

    def __init__(self, home: Path, port: int, debian: Path) -> None:
        self.home, self.port = home, port
        self.child: subprocess.Popen[bytes] | None = None
        # The HTTP origin of origin.py listens beside it.
        self.origin = f"127.0.0.1:{port + 1}"
        for name, content in SCRIPTS.items():
            path = home / "app" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content.replace("@HOME@", str(home)))
            os.utime(path, (MTIME, MTIME))
        (home / "php-tmp").mkdir()
        (home / "not-a-socket").write_text("")
        # Debian's own files, found beside the configuration as in /etc/nginx.
        (home / "snippets").mkdir()
        for name in SNIPPETS:
            shutil.copy(debian / name, home / name)

    def pools(self) -> str:
        """The configuration of the three pools."""
        user = "user = root\ngroup = root\n" if os.getuid() == 0 else ""
        text = f"[global]\nerror_log = {self.home}/fpm.log\ndaemonize = no\n"
        for name, listen, children in (
            ("a", f"{self.home}/a.sock", 4),
            ("b", f"{self.home}/b.sock", 2),
            ("c", f"127.0.0.1:{self.port}", 2),
        ):
            text += POOL.format(name=name, listen=listen, children=children, home=self.home) + user
        return text

    def start(self) -> None:
        """Starts it, and waits until it takes requests."""
        conf = self.home / "fpm.conf"
        conf.write_text(self.pools())
        with open(self.home / "fpm.stderr", "wb") as log:
            self.child = subprocess.Popen(
                [find_fpm(), "-F", "-R", "-y", str(conf)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + 60
        while not self.is_ready():
            if self.child.poll() is not None or time.monotonic() > deadline:
                said = (self.home / "fpm.stderr").read_text()
                raise SystemExit("php-fpm does not start:\n" + said)
            time.sleep(0.01)

    def is_ready(self) -> bool:
        """Whether it has said so."""
        log = self.home / "fpm.log"
        return log.exists() and "ready to handle" in log.read_text()

    def stop(self) -> None:
        """Ends it."""
        if self.child:
            self.child.terminate()
            self.child.wait()
            self.child = None

    def expand(self, text: str) -> str:
        """Addresses of the pools in place of the words for them."""
        for name in "ab":
            text = text.replace(f"@PHP{name.upper()}@", f"unix:{self.home}/{name}.sock")
        return text.replace("@PHPC@", f"127.0.0.1:{self.port}")

    def normalise(self, text: str) -> str:
        """Words in place of addresses."""
        text = text.replace(f"127.0.0.1:{self.port}", "PHPC").replace(self.origin, "ORIGIN")
        return text.replace(str(self.port + 1), "OPORT")
