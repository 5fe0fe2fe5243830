"""Owns configurations that are large in the ways that sites are.

    python3 -m bolide_lab.large_sites routing DIR
        DIR/large.conf and DIR/one.conf: the same requests through 1,000 server names, 200 locations
        and 20 maps, and without
    python3 -m bolide_lab.large_sites hosts
        the hosts to ask there: by name, by wildcard, by expression
    python3 -m bolide_lab.large_sites vhosts DIR [--count N] [--certificates N] [--port P]
            [--workers N]
        DIR/vhosts.conf: N servers as hosters have them; with --certificates over TLS, with N
        certificates among them

The configurations are nginx's, and both servers read them. DIR/site holds what is asked for.
Certificates of a routing configuration are DIR/cert.pem and DIR/key.pem.
"""

from __future__ import annotations

import argparse
import pathlib
import subprocess

HEAD = """\
daemon off;
worker_processes {workers};
user root;
pid {dir}/run/pid;
error_log {dir}/run/error.log warn;
worker_rlimit_nofile 60000;
events {{ worker_connections 1024; }}
http {{
    types {{ text/html html; image/jpeg jpg; }}
    default_type application/octet-stream;
    access_log off;
    fastcgi_temp_path {dir}/run/fastcgi;
    client_body_temp_path {dir}/run/bodies;
    keepalive_requests 1000000000;
    keepalive_timeout 300s;
    server_names_hash_max_size 65536;
    server_names_hash_bucket_size 128;
    map_hash_max_size 8192;
    map_hash_bucket_size 256;
    variables_hash_max_size 4096;
"""

WORDS = [
    *("shop", "blog", "news", "forum", "wiki", "mail", "docs", "media", "portal", "archive"),
    *(
        "events",
        "help",
        "status",
        "store",
        "team",
        "login",
        "admin",
        "search",
        "api",
        "feed",
        "cart",
    ),
    *("order", "account", "profile", "gallery", "video", "music", "photo", "travel", "food"),
    *("health", "sport", "games", "jobs", "school", "city", "house", "garden", "market", "bank"),
    *("crypto", "weather", "maps", "books", "film", "radio", "press", "legal", "about", "contact"),
    *("support", "partner"),
]


def word(n: int) -> str:
    """A name that no other number has."""
    return WORDS[n % len(WORDS)] + (str(n // len(WORDS)) if n >= len(WORDS) else "")


# ---- routing ----------------------------------------------------------------


def regex_locations() -> list[str]:
    """Fifty, as they stand in grown configurations."""
    ends = ["php5", "phtml", "pl", "py", "cgi", "asp", "aspx", "jsp", "do", "action"]
    sources = [rf"~ \.{end}$" for end in ends]
    sources += [
        r"~ /\.(?!well-known)",
        r"~* \.(?:css|js|map)$",
        r"~* \.(?:gif|ico|png|svg|webp|avif)$",
        r"~* \.(?:woff2?|ttf|otf|eot)$",
        r"~* \.(?:mp4|webm|ogg|mp3|flac)$",
        r"~* \.(?:zip|tar|gz|bz2|xz|7z|rar)$",
        r"~* \.(?:bak|old|orig|save|swp|sql|log|ini|conf)$",
        r"~ ^/(?:build|tests|config|lib|3rdparty|templates|data)(?:$|/)",
        r"~ ^/(?:autotest|occ|issue|indie|db_|console)",
        r"~ ^/wp-(?:admin|includes)/.*\.php$",
        r"~* ^/wp-content/uploads/.*\.(?:php|phar)$",
        r"~ ^/sites/.*/private/",
        r"~ ^/sites/[^/]+/files/.*\.php$",
        r"~ ^/sites/.*/files/styles/",
        r"~ (^|/)\.",
        r"~ /vendor/.*\.php$",
        r"~* ^/(?:composer|package)\.(?:json|lock)$",
        r"~ ^/(?<lang>en|de|fr|es|it)/(?<rest>old/.*)$",
        r"~ ^/user/([0-9]+)/profile$",
        r"~ ^/user/([0-9]+)/posts/([0-9]+)$",
        r"~ ^/tag/([a-z0-9-]+)/page/([0-9]+)$",
        r"~ ^/([0-9]{4})/([0-9]{2})/([a-z0-9-]+)/?$",
        r"~ ^/product-([0-9]+)\.html$",
        r"~ ^/category/(.+)/list$",
        r"~* ^/download/(.*)/latest$",
        r"~ ^/static/version[0-9]+/",
        r"~ ^/media/customer/",
        r"~ ^/media/downloadable/",
        r"~ ^/errors/.*\.(xml|phtml)$",
        r"~* (?:\.php|\.phar|\.inc)(?:/|$)",
        r"~ ^/~([a-z_][a-z0-9_-]*)(/.*)?$",
        r"~ ^/api/v[1-4]/items/[0-9a-f]{8}$",
        r"~ ^/api/v[1-4]/users/\w+$",
        r"~ \s$",
        r"~ //",
        r"~* (?:eval\(|base64_)",
        r"~ ^/cgi-bin/",
        r"~ ^/(?!index|home)[a-z]{3}-landing$",
        r"~ \.well-known/acme-challenge/([A-Za-z0-9_-]+)$",
        r"~ ^/final/([a-z]+)/([0-9]+)\.html$",
    ]
    assert len(sources) == 50, len(sources)
    return sources


def locations() -> str:
    """Two hundred, of all kinds."""
    lines = []
    for n in range(20):
        lines.append(f"        location = /exact/{word(n)}.html {{ return 404; }}")
    for n in range(125):
        lines.append(f"        location /{word(n)}/ {{ expires 1h; }}")
    for n in range(4):
        lines.append(f"        location ^~ /fixed/{word(n)}/ {{ expires 1d; }}")
    for source in regex_locations():
        body = "try_files $uri =404;" if "/final/" in source else "return 403;"
        quoted = source.split(" ", 1)
        lines.append(f'        location {quoted[0]} "{quoted[1]}" {{ {body} }}')
    lines.append("        location / { try_files $uri =404; }")
    return "\n".join(lines)


def server_names() -> list[list[str]]:
    """A thousand names of 250 servers: 780 exact, 140 + 60 with wildcards, 20 expressions."""
    servers: list[list[str]] = [[] for _ in range(250)]
    for n in range(780):
        servers[n % 250].append(
            f"{'www.' if n % 2 else ''}{word(n)}.example.{'com' if n % 3 else 'org'}"
        )
    for n in range(140):
        servers[n % 250].append(f"*.{word(n)}.example.net")
    for n in range(60):
        servers[(n + 140) % 250].append(f"{word(n)}.brand.*")
    for n in range(19):
        servers[n + 200].append(f"~^(?<tenant>[a-z0-9-]+)\\.{word(n)}\\.apps\\.example$")
    servers[249].append(r"~^shard[0-9]+\.tenant\.example$")
    assert sum(map(len, servers)) == 1000
    return servers


# Servers with all locations and maps, and a host of each: by name, by wildcard, by expression.
ASKED = {
    100: f"{word(100)}.example.com",
    110: f"some.{word(110)}.example.net",
    249: "shard7.tenant.example",
}


def maps() -> list[str]:
    """Twenty maps of some hundreds of rows, and the variables that they make."""
    sources = [
        "$host",
        "$host",
        "$host",
        "$uri",
        "$uri",
        "$uri",
        "$request_uri",
        "$http_user_agent",
        "$http_user_agent",
        "$http_accept_language",
        "$http_cookie",
        "$http_referer",
        "$args",
        "$arg_page",
        "$request_method",
        "$scheme$host",
        "$remote_addr",
        "$http_x_requested_with",
        "$m3",
        "$m7",
    ]
    texts = []
    for n, source in enumerate(sources):
        rows = ["default 0;"]
        if source == "$host":
            rows.insert(0, "hostnames;")
            rows += [f"{word(k)}.example.com {k};" for k in range(250)]
            rows += [f"*.{word(k)}.example.net {k};" for k in range(100)]
            rows += [f"{word(k)}.map{n}.* {k};" for k in range(20)]
        elif source in ("$uri", "$request_uri"):
            rows += [f"/{word(k)}/index.html {k};" for k in range(300)]
            rows += [rf"~^/{word(k)}/old/(.*)$ {k};" for k in range(20)]
            rows += [r"~*\.(?:exe|dll|msi)$ 2;", r"~^/(?:private|internal)/ 3;"]
        elif source == "$http_user_agent":
            bots = [f"{word(k)}bot" for k in range(30)] + ["crawl", "spider", "slurp", "wget"]
            rows += [f'"~*{bot}" {k};' for k, bot in enumerate(bots)]
            rows += [f'"Agent/{k}" {k};' for k in range(250)]
        elif source == "$http_cookie":
            rows += [f'"~*(?:^|;\\s*){word(k)}_session=([^;]+)" {k};' for k in range(10)]
            rows += [f'"{word(k)}=1" {k};' for k in range(200)]
        elif source == "$http_referer":
            rows += [rf'"~^https?://([^/]*\.)?{word(k)}\.example/" {k};' for k in range(20)]
            rows += [f'"https://{word(k)}.example/" {k};' for k in range(200)]
        else:
            rows += [f'"{word(k)}{n}" {k};' for k in range(300)]
        inner = "\n        ".join(rows)
        texts.append(f'    map "{source}" $m{n} {{\n        {inner}\n    }}')
    return texts


LISTEN = """
        listen 127.0.0.1:{port};
        listen 127.0.0.1:{tls} ssl;"""
TLS = """
    ssl_certificate {dir}/cert.pem;
    ssl_certificate_key {dir}/key.pem;
    http2 on;
"""
# What is said of a request: with maps, and as the same text without.
SAID = [f"$m{n}$m{n + 1}$m{n + 2}" for n in range(0, 12, 3)]
USES = """
        set $chosen "$m12$m13";
        if ($m14) { return 405; }
        if ($m15) { return 403; }
        if ($m16 = 7) { return 403; }
        add_header X-Set "$chosen$m17$m18$m19";
"""


def routing(dir: pathlib.Path, port: int, tls: int) -> None:
    """Writes the configurations of routing, and the files that are asked for."""
    head = HEAD.format(dir=dir, workers=1) + TLS.format(dir=dir)
    listen = LISTEN.format(port=port, tls=tls)
    said = "".join(f'\n        add_header X-Map-{n} "{text}";' for n, text in enumerate(SAID))
    out = [head, "    log_format some '$uri $status';", *maps()]
    for n, names in enumerate(server_names()):
        text = " ".join(f'"{name}"' for name in names)
        main = n in ASKED
        inner = said + USES + locations() if main else "\n        location / { return 204; }"
        named = f"{listen}\n        server_name {text};\n        root {dir}/site;"
        out.append(f"    server {{{named}{inner}\n    }}")
    out.append("}\n")
    (dir / "large.conf").write_text("\n".join(out))
    plain = "".join(f'\n        add_header X-Map-{n} "000";' for n in range(len(SAID)))
    plain += '\n        add_header X-Set "00000";\n'
    (dir / "one.conf").write_text(
        f"{head}    server {{{listen}\n        root {dir}/site;{plain}"
        "        location / { try_files $uri =404; }\n    }\n}\n"
    )
    for path in ("plain.html", "final/page/42.html", "a/deep/path/to/some/picture.jpg"):
        file = dir / "site" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x" * 1000)


# ---- vhosts -----------------------------------------------------------------

VHOST = """\
server {{
    listen 127.0.0.1:{port}{ssl};
    server_name {name}.example www.{name}.example *.{name}.example;
    root {dir}/site;
    access_log {dir}/logs/{n}.log;
    index index.php index.html;{tls}
    location / {{ try_files $uri $uri/ /index.php?$args; }}
    location = /favicon.ico {{ log_not_found off; access_log off; }}
    location /static/ {{ expires 30d; add_header Cache-Control public; }}
    location ~ \\.php$ {{
        fastcgi_pass unix:{dir}/php.sock;
        include {dir}/fastcgi_params;
    }}
}}
"""


def certificates(dir: pathlib.Path, count: int) -> None:
    """Certificates of their own, all by one key and each with its name."""
    key = dir / "many.pem"
    if not key.exists():
        openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key)
    for n in range(count):
        chain = dir / f"chain{n}.pem"
        if not chain.exists():
            name = f"/CN={word(n)}.example"
            openssl("req", "-x509", "-key", key, "-days", "30", "-subj", name, "-out", chain)


def openssl(*args: object) -> None:
    """Runs a command of openssl."""
    subprocess.run(["openssl", *map(str, args)], check=True, stderr=subprocess.DEVNULL)


def vhosts(dir: pathlib.Path, count: int, certs: int, port: int, workers: int) -> None:
    """Writes the configuration of a hoster."""
    (dir / "logs").mkdir(exist_ok=True)
    parts = [HEAD.format(dir=dir, workers=workers)]
    for n in range(count):
        tls = ""
        if certs:
            tls = f"\n    ssl_certificate {dir}/chain{n % certs}.pem;"
            tls += f"\n    ssl_certificate_key {dir}/many.pem;"
        parts.append(
            VHOST.format(
                dir=dir, n=n, name=f"{word(n)}", port=port, tls=tls, ssl=" ssl" if certs else ""
            )
        )
    parts.append("}\n")
    (dir / "vhosts.conf").write_text("".join(parts))
    params = pathlib.Path(__file__).parents[2] / "bench/conf/fastcgi_params"
    (dir / "fastcgi_params").write_text(params.read_text().replace("@DIR@", str(dir)))
    if certs:
        certificates(dir, certs)


def main() -> None:
    """Writes what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=["routing", "hosts", "vhosts"])
    parser.add_argument("dir", type=pathlib.Path, nargs="?", default=pathlib.Path())
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--certificates", type=int, default=0)
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--tls-port", type=int, default=8443)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    if args.what == "hosts":
        print(*ASKED.values(), sep="\n")
        return
    dir = args.dir.resolve()
    for sub in ("site", "run"):
        (dir / sub).mkdir(parents=True, exist_ok=True)
    if args.what == "routing":
        routing(dir, args.port, args.tls_port)
    else:
        vhosts(dir, args.count, args.certificates, args.port, args.workers)


if __name__ == "__main__":
    main()
