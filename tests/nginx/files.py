"""Owns: the files that both servers serve. All have the same time, so that lists are the same."""

import gzip
import os
import subprocess
from pathlib import Path

from .videos import FILES as VIDEOS

MTIME = 1_700_000_000
PAGE = "".join(f"<p>This is paragraph {n} of the page.</p>\n" for n in range(250)).encode()

FILES = {
    **VIDEOS,
    "index.html": b"<!DOCTYPE html>\n<title>index</title>\n<p>It works.</p>\n",
    "hello.txt": b"hello, bolide\n",
    "digits.txt": b"0123456789" * 10,
    "big.bin": bytes(range(256)) * 1024,
    "page.html": PAGE,
    "style.css": b"body { color: black }\n" * 100,
    "small.css": b"a{}\n",
    "app.js": b"let x = 1;\n" * 100,
    "data.json": b'{"a":1}',
    "photo.jpg": bytes(range(256)) * 4,
    "icon.svg": b"<svg/>\n",
    "UPPER.TXT": b"upper\n",
    "empty.txt": b"",
    "noext": b"no extension\n",
    "odd.unknown": b"unknown\n",
    ".hidden": b"hidden\n",
    "two.dots.txt": b"two dots\n",
    "with space.txt": b"space\n",
    "plus+plus.txt": b"plus\n",
    "percent%41.txt": b"percent\n",
    "que?stion.txt": b"question\n",
    "semi;colon.txt": b"semi\n",
    "uml\u00e4ut.txt": b"umlaut\n",
    "a/b/c.txt": b"a b c\n",
    "dir/index.html": b"<p>dir</p>\n",
    "dir/file.txt": b"file\n",
    "dir/other.htm": b"other\n",
    "dir with space/x.txt": b"x\n",
    "noindex/keep.txt": b"keep\n",
    "php/index.php": b"<?php\n",
    "second/second.html": b"second\n",
    "indexdir/index.html/inside.txt": b"inside\n",
    "list/a.txt": b"a\n",
    'list/b <b> & "c"\'.txt': b"b\n",
    "list/B.txt": b"B\n",
    "list/c:d.txt": b"c\n",
    "list/question?.txt": b"q\n",
    "list/percent%.txt": b"p\n",
    "list/hash#.txt": b"h\n",
    "list/uml\u00e4ut.txt": b"u\n",
    "list/" + "long" * 12 + ".txt": b"49 to 51\n",
    "list/" + "n" * 50: b"50\n",
    "list/" + "n" * 51: b"51\n",
    "list/" + "\u00fc" * 60 + ".txt": b"wide\n",
    "list/.hidden": b"hidden\n",
    "list/big.bin": b"x" * 1_500_000,
    "list/kilo.bin": b"x" * 1500,
    "list/ten.bin": b"x" * 10_240,
    "list/sub/c.txt": b"c\n",
    "list/a dir/c.txt": b"c\n",
    "emptydir/x/y": b"",
    "errors/404.html": b"<p>custom 404</p>\n",
    "errors/50x.html": b"<p>custom 50x</p>\n",
    "errors/denied.txt": b"denied\n",
    "other/x.txt": b"other x\n",
    "other/sub/y.txt": b"other sub y\n",
    "other/index.html": b"other index\n",
    "pre.txt": b"plain text, plain text\n" * 60,
    "pre.txt.gz": gzip.compress(b"plain text, plain text\n" * 60, mtime=0),
    "onlygz.txt.gz": gzip.compress(b"only compressed\n", mtime=0),
    "fallback.html": b"<p>fallback</p>\n",
    "en.html": b"<p>en</p>\n",
}

# One user per form of hash; all passwords are "pw" but that of "twice".
USERS = [
    "#comment:{PLAIN}pw",
    "plain:{PLAIN}pw",
    "sha:{SHA}GpHWL3ymc5liWkNopqtdSjuqYHM=",
    "ssha:{SSHA}K/qCHdTzr1rftXNEV4Ob7XsySBlzYWx0",
    "des:abzlUXK5ed5rs",
    "md5:$1$abc$Kb85XxsXB.VXinPhbS4431",
    "apr:$apr1$abcdefgh$5VEbMkemELfbhC5ck.U.z1:and more",
    "s5:$5$rounds=1000$abc$zdUXQ3de2d3x/8MYX1t30oZjPfJThZR5heHeVDYi8j6",
    (
        "s6:$6$abc$MtSdWSZbhct2oe.SOqOUM2M/GA/uj5.vyVtJgRHgKi9uqXuWuJqOYE7H/YlsYGVg/"
        "YYzDV0xt3fEIwYt580.5."
    ),
    "bc:$2y$05$abcdefghijklmnopqrstuuHIrMEWpUCQe2YqFR3sXwQ75u4od..9q",
    "yes:$y$j9T$abcdefgh$UGYCVcUwcoG0k8SZZ.Uz3i0RYQNy1YmYj4I4poBPer2",
    "nohash:",
    "odd:$9$nothing",
    "twice:{PLAIN}other",
    "twice:{PLAIN}pw",
    "last:{PLAIN}pw",
]


def fill(home: Path) -> None:
    """Writes www/, a certificate and its key, and broken ones."""
    www = home / "www"
    for name, content in FILES.items():
        path = www / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (www / "link.txt").symlink_to("hello.txt")
    (www / "linkdir").symlink_to("dir")
    (www / "dangling").symlink_to("nowhere")
    (www / "loop").symlink_to("loop")
    (www / "list/link.txt").symlink_to("a.txt")
    (www / "list/dangling").symlink_to("nowhere")
    (www / "emptydir/x/y").unlink()
    (www / "emptydir/x").rmdir()
    os.mkfifo(www / "fifo")
    for path in [*www.rglob("*"), www]:
        os.utime(path, (MTIME, MTIME), follow_symlinks=False)
    (home / "sub").mkdir()
    certificate(home, "cert")
    certificate(home, "stranger")
    (home / "broken.pem").write_text(
        "-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n"
    )
    (home / "empty.pem").write_text("")
    (home / "types.conf").write_text("text/html html;\ntext/x-included inc txt;\n")
    (home / "broken.conf").write_text("listen 80;\nfrobnicate on;\n")
    (home / "denied.conf").mkdir()
    (home / "users").write_text("\n".join(USERS))


def certificate(home: Path, name: str) -> None:
    """Makes a certificate of its own, and its key."""
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "30",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost",
            "-keyout",
            f"{home}/{name}.key",
            "-out",
            f"{home}/{name}.pem",
        ],
        check=True,
        capture_output=True,
    )
