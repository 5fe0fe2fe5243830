"""Owns: the php-fpm that both servers of a comparison use, and the scripts it runs.

Three pools of the same PHP: a and b on unix sockets, c on a TCP port; each tells its name.
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

# What differs from one request or machine to the next.
ENV = """<?php
header('Content-Type: text/plain');
$skip = ['REMOTE_PORT', 'REQUEST_TIME', 'REQUEST_TIME_FLOAT', 'USER', 'HOME', 'FCGI_ROLE', 'POOL'];
ksort($_SERVER);
foreach ($_SERVER as $name => $value) {
    if (!in_array($name, $skip)) echo "$name=", json_encode($value, JSON_UNESCAPED_SLASHES), "\\n";
}
"""
ECHO = """<?php
header('Content-Type: text/plain');
$body = file_get_contents('php://input');
echo $_SERVER['REQUEST_METHOD'], ' ', strlen($body), ' ', md5($body), "\\n", substr($body, 0, 60), "\\n";
foreach (['CONTENT_LENGTH', 'CONTENT_TYPE', 'HTTP_TRANSFER_ENCODING', 'HTTP_CONTENT_LENGTH', 'HTTP_EXPECT'] as $name) {
    echo $name, '=', json_encode($_SERVER[$name] ?? null), "\\n";
}
$files = [];
foreach ($_FILES as $name => $file) {
    $files[$name] = [$file['name'], $file['type'], $file['error'], $file['size'], @md5_file($file['tmp_name'])];
}
echo json_encode([$_GET, $_POST, $files]), "\\n";
"""
# ?h[]=FIELD&s=STATUS&b=TEXT&n=BYTES: says what it is asked for.
SAY = """<?php
header('Content-Type: text/plain');
foreach ($_GET['h'] ?? [] as $field) header($field, stripos($field, 'content-type:') === 0);
if (isset($_GET['s'])) http_response_code((int) $_GET['s']);
echo $_GET['b'] ?? "said\\n";
echo str_repeat('0123456789abcde\\n', (int) ($_GET['n'] ?? 0) >> 4);
"""
# ?n=NAME: says how often it ran for this name, with the fields h[], the status s, and what the other
# arguments ask for: those with a 2 at their end from the second run on.
ZONE = """<?php
header('Content-Type: text/plain');
$file = '@HOME@/php-tmp/count-' . $_SERVER['SERVER_PORT'] . '-' . sha1($_SERVER['SITE'] . strtok($_SERVER['REQUEST_URI'], '?') . $_GET['n']);
$lock = fopen($file, 'c+'); flock($lock, LOCK_EX);
$run = (int) stream_get_contents($lock) + 1;
ftruncate($lock, 0); rewind($lock); fwrite($lock, $run); fclose($lock);
foreach ($_GET['h'] ?? [] as $field) header($field, stripos($field, 'content-type:') === 0);
if (isset($_GET['s'])) http_response_code((int) $_GET['s']);
if ($run >= 2) {
    if (isset($_GET['from2'])) http_response_code((int) $_GET['from2']);
    if (isset($_GET['die2'])) posix_kill(getmypid(), 9);
    usleep((int) ($_GET['ms2'] ?? 0) * 1000);
}
usleep((int) ($_GET['ms'] ?? 0) * 1000);
if (isset($_GET['confirm']) && (isset($_SERVER['HTTP_IF_NONE_MATCH']) || isset($_SERVER['HTTP_IF_MODIFIED_SINCE']))) {
    http_response_code(304);
    exit;
}
$text = "run $run\\n";
if (isset($_GET['cond'])) {
    foreach ($_SERVER as $name => $value) if (preg_match('/^HTTP_(IF_|RANGE)/', $name)) $text .= "$name=$value\\n";
}
echo str_pad($text, (int) ($_GET['len'] ?? 0), '.');
"""
SCRIPTS = {
    "env.php": ENV,
    "index.php": ENV.replace("text/plain')", "text/plain; x=index')"),
    "dir/index.php": ENV,
    "dir/env.php": ENV,
    "wp/index.php": ENV,
    "dot.d/env.php": ENV,
    "with space.php": ENV,
    "env.phtml": ENV,
    "echo.php": ECHO,
    "say.php": SAY,
    "big.php": "<?php header('Content-Type: text/plain');\nfor ($n = 0; $n < (int) ($_GET['n'] ?? 1000); $n++) echo \"line_{$n}_of a long answer\\n\";\n",
    "length.php": "<?php header('Content-Type: text/plain');\n$t = str_repeat('length ', (int) ($_GET['n'] ?? 10));\nheader('Content-Length: ' . (strlen($t) + (int) ($_GET['d'] ?? 0)));\necho $t;\n",
    "flush.php": "<?php header('Content-Type: text/plain');\nforeach (['one', 'two', 'three'] as $word) { echo $word, \"\\n\"; flush(); usleep(30000); }\n",
    "slow.php": "<?php header('Content-Type: text/plain');\nif (isset($_GET['first'])) { echo \"first\\n\"; flush(); }\nusleep((int) $_GET['ms'] * 1000);\necho \"slow\\n\";\n",
    "zone.php": ZONE,
    "pool.php": "<?php header('Content-Type: text/plain');\nif (isset($_GET['s'])) http_response_code((int) $_GET['s']);\necho getenv('POOL'), \"\\n\";\n",
    "stderr.php": "<?php header('Content-Type: text/plain');\nerror_log('one line');\nerror_log(\"two\\nlines\");\nerror_log('odd: \"quoted\" \\\\ ' . chr(1) . ' \u00fc');\nif (isset($_GET['long'])) error_log(str_repeat('long ', (int) $_GET['long']));\necho \"said\\n\";\n",
    "warning.php": "<?php header('Content-Type: text/plain');\necho $undefined, \"warned\\n\";\n",
    "fatal.php": "<?php header('Content-Type: text/plain');\nno_such_function();\n",
    "parse.php": "<?php header('Content-Type: text/plain');\nif (\n",
    "die.php": "<?php header('Content-Type: text/plain');\nif (isset($_GET['first'])) { echo \"first\\n\"; flush(); usleep(50000); }\nposix_kill(getmypid(), 9);\n",
    "empty.php": "",
    "nothing.php": "<?php header_remove(); ini_set('default_mimetype', ''); exit;\n",
    "exit.php": "<?php exit(3);\n",
    "cookies.php": "<?php header('Content-Type: text/plain');\nsetcookie('a', '1', ['path' => '/']);\nsetcookie('b', '2', ['secure' => true, 'httponly' => true]);\necho json_encode($_COOKIE), \"\\n\";\n",
    "auth.php": "<?php header('Content-Type: text/plain');\necho json_encode([$_SERVER['PHP_AUTH_USER'] ?? null, $_SERVER['PHP_AUTH_PW'] ?? null, $_SERVER['HTTP_AUTHORIZATION'] ?? null, $_SERVER['REMOTE_USER'] ?? null, $_SERVER['AUTH_TYPE'] ?? null]), \"\\n\";\n",
    "page.php": "<?php\nfor ($n = 0; $n < 250; $n++) echo \"<p>This is paragraph $n of the page.</p>\\n\";\n",
    "error.php": "<?php header('Content-Type: text/plain');\nhttp_response_code((int) ($_GET['s'] ?? 404));\necho 'error page for ', $_SERVER['REQUEST_URI'], ' ', $_SERVER['REDIRECT_STATUS'] ?? '', ' ', $_SERVER['REQUEST_METHOD'], \"\\n\";\n",
    "style.css": "body { color: black }\n",
    "upload.jpg": "<?php echo 'executed';\n",
    "secret/file.txt": "secret file\n",
    "errors/50x.html": "<p>custom 50x</p>\n",
    "errors/404.html": "<p>custom 404</p>\n",
}
MTIME = 1_700_000_000
SNIPPETS = ("fastcgi.conf", "fastcgi_params", "mime.types", "snippets/fastcgi-php.conf")


def program():
    found = sorted(Path("/usr/sbin").glob("php-fpm*"))
    return str(found[-1]) if found else None


class Php:
    """The running php-fpm."""

    def __init__(self, home, port, debian):
        self.home, self.port, self.child = home, port, None
        # The HTTP origin of compare/origin.py listens beside it.
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

    def start(self):
        fpm = program()
        if not fpm:
            raise SystemExit("missing tool: php-fpm (run scripts/setup.sh test)")
        user = "user = root\ngroup = root\n" if os.getuid() == 0 else ""
        text = f"[global]\nerror_log = {self.home}/fpm.log\ndaemonize = no\n"
        for name, listen, children in (("a", f"{self.home}/a.sock", 4), ("b", f"{self.home}/b.sock", 2), ("c", f"127.0.0.1:{self.port}", 2)):
            text += POOL.format(name=name, listen=listen, children=children, home=self.home) + user
        conf = self.home / "fpm.conf"
        conf.write_text(text)
        log = open(self.home / "fpm.stderr", "wb")
        self.child = subprocess.Popen([fpm, "-F", "-R", "-y", str(conf)], stdin=subprocess.DEVNULL,
                                      stdout=log, stderr=log, start_new_session=True)
        deadline = time.monotonic() + 60
        while not (self.home / "b.sock").exists() or "ready to handle" not in (self.home / "fpm.log").read_text():
            if self.child.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("php-fpm does not start:\n" + (self.home / "fpm.stderr").read_text())
            time.sleep(0.01)

    def stop(self):
        if self.child:
            self.child.terminate()
            self.child.wait()
            self.child = None

    def expand(self, text):
        for name in "ab":
            text = text.replace(f"@PHP{name.upper()}@", f"unix:{self.home}/{name}.sock")
        return text.replace("@PHPC@", f"127.0.0.1:{self.port}")

    def normalise(self, text):
        return text.replace(f"127.0.0.1:{self.port}", "PHPC").replace(self.origin, "ORIGIN").replace(str(self.port + 1), "OPORT")
