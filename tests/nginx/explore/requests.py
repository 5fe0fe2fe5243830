"""Owns: random requests, as parts that can be left out one by one."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from ..text import listed, words
from . import values as v

ODD = [
    "%2f",
    "%2F",
    "//",
    "/../",
    "/./",
    "/..",
    "/.",
    "%2e%2e/",
    "%00",
    "%",
    "%4",
    "%zz",
    "%25",
    "%3f",
    "%23",
    "\\",
    "%5c",
    "+",
    "%2b",
    ";",
    "%20",
    "é",
    "\xff",
    "%ff",
    "%c3%a9",
    "#",
    "?",
    "&",
    "=",
    "%0a",
    "%0d",
    "~",
    "*",
    ":",
    "@",
    '"',
    "<",
    "|",
    "%61",
    "%41",
    "///",
    "....",
    "/.../",
    "\x7f",
    "%7f",
    "%22",
    "'",
    "%",
    "/%2e/",
    "$1",
    "$uri",
    "{",
    "\x01",
    "%01",
]


@dataclass
class Request:
    """One request; `more` is a second one on the same connection."""

    method: str = "GET"
    target: str = "/"
    version: str = "HTTP/1.1"
    fields: list[str] = field(default_factory=list)
    body: bytes = b""
    more: "Request | None" = None
    # The certificate that is shown over TLS; none if empty.
    client: str = ""

    def bytes(self) -> bytes:
        """What is sent."""
        lines = [f"{self.method} {self.target} {self.version}".strip()] + self.fields
        own = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + self.body
        if not self.version:
            own = f"{self.method} {self.target}\r\n".encode("latin-1")
        return own + (self.more.bytes() if self.more else b"")

    def methods(self) -> list[str]:
        """The methods of the requests."""
        return [self.method] + (self.more.methods() if self.more else [])

    def key(self) -> str:
        """The request as it is called."""
        return repr(self.bytes())[2:-1]


def random_request(
    rng: Random, paths: Sequence[str], conditions: bool = True, chunks: bool = True
) -> Request:
    """A request for one of `paths`.

    Texts of `return` have no validators, so that conditions differ there.
    """
    one = single(rng, paths)
    if not conditions:
        one.fields = [f for f in one.fields if not f.startswith(("If-N", "If-Match", "If-Un"))]
    if not chunks and any(f.startswith("Transfer") for f in one.fields):
        one.fields, one.body = [f for f in one.fields if not f.startswith("Transfer")], b""
    if (
        rng.random() < 0.06
        and chunks
        and "close" not in str(one.fields)
        and one.version == "HTTP/1.1"
    ):
        one.more = single(rng, paths)
    return one


def latin(text: str) -> str:
    """A text whose characters are the bytes of its UTF-8."""
    return (
        text.encode("utf-8").decode("latin-1")
        if any(ord(c) > 255 or c == "é" for c in text)
        else text
    )


def target_of(rng: Random, paths: Sequence[str]) -> str:
    """A target of one of these paths, made odd."""
    path = rng.choice(paths)
    while rng.random() < 0.22:
        at = rng.randint(0, len(path))
        path = path[:at] + rng.choice(ODD) + path[at:]
    if rng.random() < 0.4:
        path += rng.choice(
            words("""
                ? ?a=1 ?a ?a= ?a=b&b=2 ?A=x&a=y ?a=/dir/ ?a=hello.txt ?a=%20%41 ?x?y ?a=a&a=b ?&&
                ?b=a%26b ?a=é ?a=dir ?e=1h ?a=GET ?a=@n1 ?a=utf-8 ?a=ÿ ?a=<b> ?=x
            """)
        )
    if rng.random() < 0.04:
        path = (
            rng.choice(
                [
                    "http://a.test",
                    "http://localhost:80",
                    "HTTP://B.test",
                    "http://a.test:99",
                    "https://x.b.test",
                ]
            )
            + path
        )
    if rng.random() < 0.01:
        path = rng.choice(["*", "http://a.test", "http://a.test?x"])
    return latin(rooted(path.replace(" ", "%20")))


def rooted(target: str) -> str:
    """An absolute target has a path here: that nginx takes a lone `?` for all of it is known."""
    return re.sub(r"^(\w+://[^/?]*)\?", r"\1/?", target)


def origin_path(rng: Random) -> str:
    """What the origin is to answer, as a path for it."""
    status = rng.choice(
        ["200 OK"] * 6
        + listed("""
            404 Not Found; 302 Moved Temporarily; 301 Moved Permanently;
            500 Internal Server Error; 403 Forbidden; 401 Unauthorized; 204 No Content;
            304 Not Modified; 206 Partial Content; 503 Service Temporarily Unavailable;
            201 Created; 405 Not Allowed
        """)
    )
    body = rng.choice(
        [
            b"from the origin",
            b"<p>hello, paragraph</p>",
            b"",
            b"x" * 300,
            b'hello <!--#echo var="uri"--> e',
        ]
    )
    rows = [
        "Content-Type: text/html",
        "Content-Type: text/plain; charset=koi8-r",
        "Content-Type: text/plain",
        "Location: http://o.test/x/y?z",
        "Location: /a/b",
        "Location: http://@ORIGIN@/v/x",
        "Refresh: 5; url=http://o.test/",
        "Set-Cookie: s=1; Path=/; Domain=o.test",
        "Set-Cookie: s=2; path=/a; Secure",
        "X-Accel-Redirect: /hello.txt",
        "X-Accel-Redirect: /dir/",
        "X-Accel-Redirect: @n1",
        "X-Accel-Redirect: /a?b=c",
        "X-Accel-Redirect: /none",
        "X-Accel-Redirect: /page.html",
        "X-R: one",
        "X-R: two",
        'ETag: "o"',
        'ETag: W/"o"',
        f"Last-Modified: {v.DATE}",
        "Cache-Control: no-cache",
        "Cache-Control: private, max-age=5",
        "Expires: Thu, 01 Jan 1970 00:00:00 GMT",
        "Server: theirs",
        "Content-Language: de",
        "X-Accel-Charset: utf-8",
        "X-Accel-Buffering: no",
        "Vary: X",
        "Accept-Ranges: bytes",
        'WWW-Authenticate: Basic realm="o"',
        "Link: </x>",
        "X-Powered-By: o",
        "Content-Disposition: inline",
        "Date: Tue, 14 Nov 2023 22:13:20 GMT",
        "X-Accel-Limit-Rate: 100000",
        "Allow: GET",
    ]
    fields = rng.sample(rows, rng.choice([0, 1, 1, 2, 3, 4]))
    framing = rng.choice(["length", "length", "chunked", "close"])
    if status[:3] in ("204", "304"):
        body, framing = b"", "none"
    if framing == "length":
        fields.append(f"Content-Length: {len(body)}")
    elif framing == "chunked":
        fields.append("Transfer-Encoding: chunked")
        body = (b"%x\r\n%s\r\n" % (len(body), body) if body else b"") + b"0\r\n\r\n"
    head = "\r\n".join([f"HTTP/1.1 {status}", *fields]) + "\r\n\r\n"
    return "raw/" + (head.encode() + body).hex()


def single(rng: Random, paths: Sequence[str]) -> Request:
    """A request without a second one."""

    def maybe(p: float, *rows: str) -> list[str]:
        return [rng.choice(rows)] if rng.random() < p else []

    method = rng.choice(
        ["GET"] * 12 + ["HEAD", "HEAD", "POST", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "FOO"]
    )
    version = rng.choice(
        ["HTTP/1.1"] * 14
        + ["HTTP/1.0", "HTTP/1.0"]
        + ([""] if method == "GET" and rng.random() < 0.15 else [])
    )
    target = target_of(rng, paths)
    if rng.random() < 0.3:
        base = rng.choice([p for p in paths if p.startswith("/")]).partition("?")[0]
        target = latin(
            (base if base.endswith("/") else base + "/").replace(" ", "%20")
            + origin_path(rng)
            + rng.choice(["", "", "?a=1", "?b=2&a=x"])
        )
    fields = ["Host: " + (rng.choice(v.HOSTS) if rng.random() < 0.6 else "localhost")]
    if version == "HTTP/1.0" and rng.random() < 0.4:
        fields = []
    fields += maybe(
        0.12,
        "Range: bytes=0-3",
        "Range: bytes=5-",
        "Range: bytes=-4",
        "Range: bytes=0-1,4-5",
        "Range: bytes=900000-",
        "Range: bytes=x",
        "Range: bytes=3-1",
        "Range: bytes=0-0,-1",
    )
    fields += maybe(0.04, f"If-Range: {v.TAG}", f"If-Range: {v.DATE}", 'If-Range: "x"')
    fields += maybe(
        0.06,
        f"If-Modified-Since: {v.DATE}",
        "If-Modified-Since: Mon, 13 Nov 2023 22:13:20 GMT",
        "If-Modified-Since: Wed, 15 Nov 2023 22:13:20 GMT",
        "If-Modified-Since: x",
    )
    fields += maybe(
        0.05,
        f"If-None-Match: {v.TAG}",
        "If-None-Match: *",
        'If-None-Match: "x"',
        f"If-None-Match: W/{v.TAG}",
        f'If-None-Match: "o", {v.TAG}',
    )
    fields += maybe(
        0.03,
        f"If-Match: {v.TAG}",
        "If-Match: *",
        'If-Match: "x"',
        f"If-Unmodified-Since: {v.DATE}",
        "If-Unmodified-Since: Mon, 13 Nov 2023 22:13:20 GMT",
    )
    fields += maybe(
        0.25,
        "Accept-Encoding: gzip",
        "Accept-Encoding: gzip",
        "Accept-Encoding: gzip, deflate, br",
        "Accept-Encoding: gzip;q=0",
        "Accept-Encoding: identity",
        "Accept-Encoding: *",
        "Accept-Encoding: deflate, gzip;q=0.5",
        "Accept-Encoding: GZIP",
        "Accept-Encoding: x-gzip",
    )
    fields += maybe(
        0.15,
        "Authorization: Basic cGxhaW46cHc=",
        "Authorization: Basic cGxhaW46bm8=",
        "Authorization: Basic eA==",
        "Authorization: basic cGxhaW46cHc=",
        "Authorization: Basic !",
        "Authorization: Bearer x",
        "Authorization: Basic OnB3",
        "Authorization: Basic c2hhOnB3",
    )
    fields += maybe(
        0.12, "X: a", "X: b/c", "X-Y: one", "x-y: two", "X_Y: under", "X: é", "X:", "X: 10.1.2.3"
    )
    fields += maybe(
        0.1,
        "Cookie: c=1",
        "Cookie: c=1; d=2",
        'Cookie: d=a b;c="q"',
        "Cookie: c",
        "Cookie: cc=1;c=/a",
    )
    fields += maybe(
        0.06,
        "User-Agent: Mozilla/5.0 Bot",
        "User-Agent: a",
        "Referer: http://x.test/",
        "Referer: http://a.test",
        "Referer: x",
        "Via: 1.1 p",
        "Content-Type: text/x",
        "TE: trailers",
        "Accept: */*",
        "X-Forwarded-For: 10.0.0.1, 127.0.0.1",
        "X-Forwarded-For: 192.168.1.1",
    )
    fields += maybe(
        0.08,
        "Connection: close",
        "Connection: keep-alive",
        "Connection: Upgrade",
        "Keep-Alive: 5",
        "Upgrade: x",
    )
    # What becomes of the connection after a 412 is known to differ.
    fields += (
        ["Connection: close"] if any(f.startswith(("If-Match", "If-Unmod")) for f in fields) else []
    )
    body = b""
    if method in ("POST", "PUT", "PATCH", "DELETE") and rng.random() < 0.8 or rng.random() < 0.03:
        body = rng.choice([b"", b"a=1", b"hello", b"x" * 20, b"GET / HTTP/1.1\r\n\r\n"])
        if rng.random() < 0.7 or version != "HTTP/1.1":
            fields.append(f"Content-Length: {len(body)}")
        else:
            fields.append("Transfer-Encoding: chunked")
            body = (b"%x\r\n%s\r\n" % (len(body), body) if body else b"") + b"0\r\n\r\n"
    if version == "":
        fields, body = [], b""
    return Request(method, target, version, [latin(f) for f in fields], body)


def simpler(one: Request) -> list[Request]:
    """Requests with one part less, the largest steps first."""
    found = []
    if one.more:
        found += [replace(one, more=None), one.more]
    for at in range(len(one.fields)):
        name = one.fields[at].partition(":")[0].lower()
        if name in ("content-length", "transfer-encoding"):
            found.append(replace(one, body=b"", fields=one.fields[:at] + one.fields[at + 1 :]))
        elif name != "host":
            found.append(replace(one, fields=one.fields[:at] + one.fields[at + 1 :]))
        elif one.fields[at] != "Host: localhost":
            found.append(
                replace(one, fields=one.fields[:at] + ["Host: localhost"] + one.fields[at + 1 :])
            )
    if one.method != "GET":
        found.append(replace(one, method="GET"))
    if one.version == "HTTP/1.0":
        found.append(
            replace(
                one,
                version="HTTP/1.1",
                fields=["Host: localhost"] + [f for f in one.fields if not f.startswith("Host")],
            )
        )
    path, mark, query = one.target.partition("?")
    if mark:
        found += [replace(one, target=path)] + ([replace(one, target=path + "?")] if query else [])
    if "raw/" not in path:
        for length in (8, 3, 1):
            for at in range(1, len(path) - length + 1):
                found.append(replace(one, target=path[:at] + path[at + length :] + mark + query))
    else:
        found += [replace(one, target=target + mark + query) for target in simpler_answers(path)]
    return [one for one in found if rooted(one.target) == one.target]


def simpler_answers(path: str) -> Iterator[str]:
    """Paths for answers of the origin with a field less, and for none."""
    base, _, code = path.partition("raw/")
    head, _, body = bytes.fromhex(code.rpartition("/")[2]).partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    for at in range(1, len(lines)):
        if not lines[at].startswith((b"Content-Length", b"Transfer")):
            yield (
                base
                + "raw/"
                + (b"\r\n".join(lines[:at] + lines[at + 1 :]) + b"\r\n\r\n" + body).hex()
            )
    yield base
