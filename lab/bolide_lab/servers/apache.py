"""Owns Apache httpd: event MPM, mod_http2, files compressed beforehand, mod_cache for pages."""

from __future__ import annotations

from pathlib import Path

from bolide_lab.model import Scenario, Variant
from bolide_lab.servers.base import MIME, Server, ServerError, owned_by_user, user

MODULES = (
    *("mpm_event", "authz_core", "mime", "dir", "filter", "deflate", "headers", "rewrite"),
    *("socache_shmcb", "ssl", "http2", "alias"),
)
PHP_MODULES = ["proxy", "proxy_fcgi", "cache", "cache_disk", "setenvif"]
PRECOMPRESSED = """ RewriteEngine On
 RewriteCond %{HTTP:Accept-Encoding} gzip
 RewriteCond %{REQUEST_FILENAME}.gz -f
 RewriteRule ^(.*)\\.html$ $1.html.gz [L]
 <FilesMatch "\\.html\\.gz$">
  ForceType text/html
  Header set Content-Encoding gzip
  Header append Vary Accept-Encoding
 </FilesMatch>
"""


class Apache(Server):
    """Apache httpd 2.4."""

    name = "apache"
    programs = ("apache2-sid", "apache2", "httpd")
    originals = frozenset({"B"})

    def modules(self) -> Path:
        """The directory of its modules, beside the program that is used."""
        from bolide_lab.install import SID

        roots = [Path("/usr/lib/apache2/modules"), Path("/usr/lib64/httpd/modules")]
        if self.program().endswith("-sid"):
            roots = [SID / "usr/lib/apache2/modules"]
        for root in roots:
            if (root / "mod_ssl.so").exists():
                return root
        raise ServerError(f"{self.name}: its modules are not in {roots[0]}")

    def texts(self, scenario: Scenario, directory: Path, variant: Variant) -> dict[str, str]:
        """`apache.conf`; mod_cache is quick-handled, before any other work on a request."""
        place, old = self.place, variant == "original"
        run = owned_by_user(directory / "run")
        root = self.modules()
        names = [*MODULES, *(PHP_MODULES if place.php else ())]
        loads = [f"LoadModule {n}_module {root}/mod_{n}.so" for n in names]
        loads.append("")
        types = "\n".join(f"AddType {kind} .{end}" for end, kind in MIME.items())
        who = f"User {user()}\nGroup {user()}\n" if user() else ""
        (directory / "types").write_text("")
        inner = " AddOutputFilterByType DEFLATE text/html text/css\n" if old else PRECOMPRESSED
        if place.php:
            inner += " FallbackResource /index.php\n"
            inner += " AddOutputFilterByType DEFLATE text/html text/css text/javascript\n"
        hosts = "".join(
            f"<VirtualHost *:{place.plain_port}>\n ServerName site{n}.test\n"
            f" DocumentRoot {place.site}\n</VirtualHost>\n"
            for n in range(int(scenario.load.extra.get("vhosts", 0)))
        )
        if hosts:
            default = f" ServerName lab.test\n DocumentRoot {place.site}\n"
            hosts = f"<VirtualHost *:{place.plain_port}>\n{default}</VirtualHost>\n" + hosts
        limits = "MaxKeepAliveRequests 1000\n" if old else "MaxKeepAliveRequests 0\n"
        suites = "" if old else "SSLCipherSuite TLSv1.3 TLS_AES_128_GCM_SHA256\n"
        text = f"""ServerRoot {directory}
ServerName lab.test
PidFile {run}/apache.pid
DefaultRuntimeDir {run}
Mutex file:{run} default
ErrorLog {run}/error.log
LogLevel warn
{chr(10).join(loads)}{who}StartServers 1
ServerLimit {place.workers}
ThreadLimit 128
ThreadsPerChild 128
MaxRequestWorkers {128 * place.workers}
MinSpareThreads 1
MaxSpareThreads {128 * place.workers}
AsyncRequestWorkerFactor 8
MaxConnectionsPerChild 0
ListenBacklog 4096
KeepAlive On
{limits}KeepAliveTimeout 300
EnableSendfile On
EnableMMAP On
ServerTokens Prod
TraceEnable Off
Listen {place.host}:{place.plain_port}
Listen {place.host}:{place.tls_port} https
TypesConfig {directory}/types
{types}
DirectoryIndex index.html index.php
Protocols h2 h2c http/1.1
H2MaxSessionStreams 128
H2MinWorkers 8
H2MaxWorkers 16
SSLSessionCache shmcb:{run}/ssl(2000000)
SSLSessionTickets on
SSLHonorCipherOrder on
{suites}DeflateCompressionLevel 1
DocumentRoot {place.site}
<Directory {place.site}>
 Require all granted
 AllowOverride None
 Options FollowSymLinks
{inner}</Directory>
{self._php(run, old)}{place.rules.get(self.name, "")}<VirtualHost *:{place.tls_port}>
 SSLEngine on
 SSLCertificateFile {place.certificate}
 SSLCertificateKeyFile {place.key}
</VirtualHost>
{hosts}"""
        return {"apache.conf": text}

    def _php(self, run: Path, old: bool) -> str:
        if self.place.php is None:
            return ""
        cache = owned_by_user(run / "cache")
        text = f"""<FilesMatch "\\.php$">
 SetHandler "proxy:unix:{self.place.php}|fcgi://localhost"
</FilesMatch>
"""
        if old:
            return text
        return (
            text
            + f"""CacheQuickHandler on
CacheRoot {cache}
CacheEnable disk /
CacheDirLevels 2
CacheDirLength 1
CacheDefaultExpire 3600
CacheLock on
CacheLockPath {run}/locks
"""
        )

    def commands(self, directory: Path) -> list[list[str]]:
        """One parent in the foreground."""
        return [[self.program(), "-DFOREGROUND", "-f", str(directory / "apache.conf")]]
