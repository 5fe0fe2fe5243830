"""Owns: configurations that change sizes, windows and proofs of HTTP/2, HTTP/3 and TLS.

What is asked is in framing.py's words. Sizes and windows are written out: where they are not,
ours are larger.
"""

from collections.abc import Sequence

from ..framing import ask
from ..mistake import http as http_mistake
from ..mistake import location as location_mistake
from ..mistake import server as server_mistake
from ..site import Case, http

CERTIFIED = "ssl_certificate @CERT@; ssl_certificate_key @KEY@;"


CHUNKS = (("5", "hello"), ("001e", "x" * 30), ("12C", "y" * 300))


def in_chunk(size: str, text: str) -> str:
    """An answer in one chunk, as the origin is told to give it."""
    head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    return f"{head}{size}\r\n{text}\r\n0\r\n\r\n".encode().hex()


def site(name: str, conf: str, port: int, cases: Sequence[Case]) -> None:
    """Adds a site that is asked in framing.py's words."""
    http(name, f"{CERTIFIED} {conf}", cases, ask=ask, port=port)


site(
    "HTTP/1: sizes of chunks",
    """
    server {
        listen 127.0.0.1:@P0@; root @DIR@/www; ssi on;
        location /p/ { proxy_pass http://@ORIGIN@; }
        location /s/ { sub_filter hello HELLO; sub_filter_types *; alias @DIR@/www/; }
    }
""",
    0,
    ["h1 chunks /page.html", "h1 chunks /s/hello.txt", "h1 chunks /none"]
    + [f"h1 chunks /p/raw/{in_chunk(size, text)}" for size, text in CHUNKS],
)
site(
    "HTTP/2: sizes of frames",
    """
    http2_chunk_size 5000;
    server { listen 127.0.0.1:@P0@; http2 on; root @DIR@/www;
        location /own/ { http2_chunk_size 1000; alias @DIR@/www/; }
        location /large/ { http2_chunk_size 64k; output_buffers 2 1m; alias @DIR@/www/; }
        location /one/ { http2_chunk_size 1; return 200 0123456789; }
        location /inner/ {
            http2_chunk_size 100;
            location /inner/most { http2_chunk_size 10; alias @DIR@/www/; }
            location /inner/own { alias @DIR@/www/; }
        }
        location /moved/ { http2_chunk_size 10; rewrite ^ /own/big.bin; }
    }
""",
    0,
    [
        f"h2 data {path}"
        for path in (
            "/hello.txt",
            "/big.bin",
            "/own/big.bin",
            "/one/",
            "/inner/most/../../own/big.bin",
            "/moved/",
        )
    ]
    + ["h2 data /large/big.bin", "h2 data /large/big.bin 16777215", "h2 data /own/big.bin 32768"],
)
site(
    "HTTP/2: sizes of frames by server",
    """
    server {
        listen 127.0.0.1:@P0@; http2 on; http2_chunk_size 3000; root @DIR@/www;
        location /a/ { alias @DIR@/www/; }
    }
""",
    0,
    ["h2 data /big.bin", "h2 data /a/big.bin"],
)
BODIES = """
    server { listen 127.0.0.1:@P0@; http2 on; %s client_max_body_size 0;
        location /answers { return 200 ok; }
        location /reads { proxy_pass http://127.0.0.1:@P1@; }
        location /passes { proxy_request_buffering off; proxy_pass http://127.0.0.1:@P1@; }
    }
    server {
        listen 127.0.0.1:@P1@; client_max_body_size 0;
        location / { proxy_pass http://127.0.0.1:@P2@; }
    }
    server { listen 127.0.0.1:@P2@; client_max_body_size 0; location / { return 204; } }
"""
UPLOADS = ["/answers -", "/answers 50", "/answers 300", "/reads -", "/reads 300"]
for size in ("0", "100", "200"):
    site(
        f"HTTP/2: {size} bytes of a body before it is read",
        BODIES % f"http2_body_preread_size {size};",
        0,
        ["h2 settings"]
        + [f"h2 upload {upload}" for upload in UPLOADS + ["/reads 300 50"] * (size != "0")],
    )
site(
    "HTTP/2: how much of a body may come",
    BODIES % "http2_body_preread_size 1m;",
    0,
    ["h2 settings"] + [f"h2 upload {upload}" for upload in (*UPLOADS[:3], "/answers 90000 200")],
)
site(
    "HTTP/2: the preread size is inherited",
    f"http2_body_preread_size 300; {BODIES % ''}",
    0,
    ["h2 settings", "h2 upload /answers 1000 200"],
)
site(
    "HTTP/2: how many requests at a time",
    BODIES % "http2_max_concurrent_streams 3;",
    0,
    ["h2 settings", "h2 many 2 /reads", "h2 many 3 /reads", "h2 many 5 /reads"],
)
site(
    "HTTP/2: settings by name",
    """
    http2_max_concurrent_streams 7;
    server { listen 127.0.0.1:@P0@; listen 127.0.0.1:@P1@ ssl; http2 on; server_name a.test; }
    server {
        listen 127.0.0.1:@P1@ ssl; http2 on; server_name b.test; http2_max_concurrent_streams 9;
        http2_body_preread_size 5000;
    }
""",
    1,
    ["h2 settings a.test", "h2 settings b.test", "h2 settings c.test"],
)
ERRANT = [
    "X-Upper=1",
    "x%20y=1",
    "x:y=1",
    "x%7fy=1",
    "x%01=1",
    "x=a%00b",
    "x=a%0ab",
    "x=a%0db",
    "x=a%01b",
    "x!y=1",
    "x_y=1",
    ":status=200",
    ":foo=1",
    "+:method=GET",
    "+:path=/",
    ":scheme=",
    ":scheme=ht%20tp",
    ":scheme=1http",
    ":scheme=a+b-c.1",
    ":method=",
    ":method=get",
    ":method=G%20T",
    ":method=G_-T",
    ":path=",
    ":path=x",
    ":path=*",
    ":path=* :method=OPTIONS",
    ":path=/a%20b",
    ":path=/a%7f",
    ":path=/a%01",
    ":method",
    ":scheme",
    ":path",
    ":authority",
    ":authority +host=b.test",
    ":authority +host=",
    ":authority +host=b.test +host=b.test",
    ":authority=",
    ":authority=a/b",
    ":authority=a@b",
    ":authority=a..b",
    ":authority=a:1:2",
    ":authority=a:65536",
    ":authority=A.:080",
    ":authority=[v1.fe80::a+en1]:1",
    ":authority=a,b;c=%25",
    "+host=a.test",
    "+host=A.test",
    "+host=a.test:80",
    "content-length=x",
    "content-length=",
    "content-length=-1",
    "content-length=0 +content-length=0",
    "content-length=5",
    "content-length=0",
    ":method=CONNECT",
    ":method=TRACE",
    ":path=/gone",
    ":path=/caught",
    ":path=/none",
    "X=1 x=a%00 :path=*",
]
# Each of these twice: some may come once only, by every protocol.
TWICE = [
    *("accept", "accept-encoding", "accept-language", "authorization", "cache-control"),
    *("content-range", "content-type", "cookie", "date", "expect", "if-match"),
    *("if-modified-since", "if-none-match", "if-range", "if-unmodified-since", "origin"),
    *("range", "referer", "user-agent", "via", "x-forwarded-for", "x-real-ip"),
]
ERRANT += [f"+{name}=a +{name}=b" for name in TWICE]
LENGTHS = [
    "/reads 10 9",
    "/reads 10 10",
    "/reads 10 11",
    "/reads 10 4 4",
    "/reads 10 4 6 0",
    "/reads 10 4 7 5",
    "/reads 0 1",
    "/reads - 5",
    "/streams 10 9",
    "/streams 10 11",
    "/answers 10 9",
    "/answers 10 11",
    "/hello.txt 10 9",
    "/caught 10 9",
]
MALFORMED = """
    %s
    server {
        listen 127.0.0.1:@P0@; http2 on;
        listen 127.0.0.1:@P1@ quic;
        listen 127.0.0.1:@P1@ ssl;
        server_name a.test;
        root @DIR@/www;
        location = / { return 200 "home $http_x"; }
        location /answers { return 200 there; }
        location /gone { return 444; }
        location /caught { error_page 404 = /gone; return 404; }
        location /reads { proxy_pass http://127.0.0.1:@P2@/; }
        location /streams { proxy_request_buffering off; proxy_pass http://127.0.0.1:@P2@/; }
        location /error { internal; proxy_pass http://127.0.0.1:@P2@/error; }
    }
    server {
        listen 127.0.0.1:@P2@;
        location / { return 200 "origin $request_method $content_length"; }
    }
"""
site(
    "malformed requests",
    MALFORMED % "",
    0,
    [f"h2 fields {words}" for words in ERRANT] + [f"h2 body {words}" for words in LENGTHS],
)
site(
    "malformed requests over HTTP/3",
    MALFORMED % "",
    1,
    [f"h3 fields {words}" for words in ERRANT]
    + ["h3 fields :path x=1 +:path=/"]
    + [f"h3 body {words}" for words in LENGTHS],
)
site(
    "HTTP/3: sections that cannot be decoded",
    MALFORMED % "",
    1,
    [f"h3 section {section}" for section in ("0000ff24", "000080", "020080", "ffff7f0080")],
)
site(
    "HTTP/3: sections that wait for the table",
    MALFORMED % "client_header_timeout 1s;",
    1,
    ["h3 section 020080", "h3 section 030080"],
)
site(
    "HTTP/3: long strings",
    MALFORMED % "large_client_header_buffers 4 1k;",
    1,
    [
        f"h3 long {where} {size}"
        for where in ("request", "instruction")
        for size in (200, 1000, 1024, 1025, 2000)
    ],
)
site(
    "malformed requests lead to a page of an origin",
    MALFORMED % "error_page 400 /error;",
    0,
    ["h2 fields X=1", "h2 fields :path", "h2 fields :method", "h2 fields :authority"]
    + ["h2 body /reads 10 9", "h2 body /streams 10 11", "h2 body /answers 10 9"],
)
site(
    "malformed requests over HTTP/3 lead to a page of an origin",
    MALFORMED % "error_page 400 /error;",
    1,
    ["h3 fields X=1", "h3 fields :path", "h3 fields :method", "h3 body /reads 10 9"],
)
WRONG = ("/%25zz", "/../..", "//x", "/p")
HOSTED = ("a.wild:77", "b.wild", "c")
site(
    "HTTP/2: whose rules a target has",
    """
    merge_slashes off; error_page 400 /page;
    server {
        listen 127.0.0.1:@P0@ default_server; listen 127.0.0.1:@P1@ quic; http2 on;
        location / { return 200 "first $host $uri $request_port$is_request_port"; }
    }
    server {
        listen 127.0.0.1:@P0@; listen 127.0.0.1:@P1@ quic; server_name ~^(.)[.]wild$;
        merge_slashes on;
        location / { return 200 "second $host $uri $request_port$is_request_port"; }
    }
""",
    0,
    [f"h2 fields :authority={host} :path +:path={path}" for host in HOSTED for path in WRONG]
    + [
        f"h2 fields :authority +{name}={host} :path={path}"
        for name in (":authority", "host")
        for host in HOSTED
        for path in WRONG
    ],
)
THERE = """
    upstream both { server 127.0.0.1:@P3@; server 127.0.0.1:@P2@ backup; }
    client_body_buffer_size 8k;
    server {
        listen 127.0.0.1:@P0@; http2 on;
        listen 127.0.0.1:@P1@ quic;
        listen 127.0.0.1:@P1@ ssl;
        proxy_request_buffering off; fastcgi_request_buffering off;
        proxy_http_version 1.1;
        proxy_next_upstream http_503 non_idempotent;
        location / { proxy_pass http://127.0.0.1:@P2@; }
        location /said {
            client_body_in_file_only clean;
            proxy_intercept_errors on; error_page 404 = @said;
            proxy_pass http://127.0.0.1:@P2@/none;
        }
        location @said { return 200 "[$request_body][$request_body_file]"; }
        location /next { proxy_pass http://both; }
        location /old { proxy_http_version 1.0; proxy_pass http://127.0.0.1:@P2@; }
    }
    server {
        listen 127.0.0.1:@P2@;
        location / { return 200 "$http_transfer_encoding $http_content_length"; }
        location /none { return 404; }
    }
    server { listen 127.0.0.1:@P3@; return 503; }
"""
site(
    "bodies that are all there",
    THERE,
    0,
    [
        f"h1 body {path} {when} {told} {sizes}"
        for path in ("/", "/said", "/next", "/old")
        for when in ("there", "late")
        for told, sizes in (("chunks", "5 6"), ("length", "10"), ("length", "0"), ("chunks", "0"))
    ]
    + [f"h1 body / there {sizes}" for sizes in ("chunks 20000", "length 9000")]
    + [f"h2 body {path} {sizes}" for path in ("/", "/said") for sizes in ("- 5 6", "11 5 6")],
)
site(
    "bodies that are all there over HTTP/3",
    THERE,
    1,
    [f"h3 body {path} {sizes}" for path in ("/", "/said") for sizes in ("- 5 6", "11 5 6")],
)
site(
    "bodies that a text came before over HTTP/3",
    """
    server {
        listen 127.0.0.1:@P1@ quic; listen 127.0.0.1:@P1@ ssl;
        location /text { return 404 text; error_page 404 /p/; }
        location /moved { return 302 http://r.test/; error_page 302 /p/; }
        location /here { return 307 /x; error_page 307 @p; }
        location /denied { deny all; error_page 403 @p; }
        location /none { error_page 404 405 @p; }
        location /p/ { proxy_pass http://127.0.0.1:@P2@; }
        location @p { proxy_pass http://127.0.0.1:@P2@; }
    }
    server {
        listen 127.0.0.1:@P2@;
        location / { return 200 "$request_method $http_content_length"; }
    }
""",
    1,
    [
        f"h3 body /{path} {sizes}"
        for path in ("text", "moved", "here", "denied", "none")
        for sizes in ("5 5", "- 5")
    ],
)
site(
    "HTTP/3: the last request",
    MALFORMED % "keepalive_requests 3;",
    1,
    ["h3 last /answers 3", "h3 last /reads 3", "h3 fields x=1"],
)
site(
    "HTTP/2: max_headers",
    MALFORMED % "max_headers 3;",
    0,
    [
        "h2 fields a=1 b=2 c=3 +cookie=a +cookie=b x_y=1 +cookie=c",
        "h2 fields a=1 b=2 c=3 d=4",
        "h2 fields a=1 b=2 +host=a.test content-length=0",
    ],
)
site(
    "HTTP/3: max_headers",
    MALFORMED % "max_headers 3;",
    1,
    [
        "h3 fields a=1 b=2 c=3 +cookie=a +cookie=b x_y=1 +cookie=c",
        "h3 fields a=1 b=2 c=3 d=4",
    ],
)
site(
    "HTTP/2: what comes first",
    BODIES % "",
    0,
    [f"h2 first {what}" for what in ("ack", "nothing", "ping", "window", "priority")]
    + ["h2 unsettled GET", "h2 unsettled POST"],
)
site(
    "HTTP/2: what comes before a small window is known",
    BODIES % "http2_body_preread_size 65534;",
    0,
    ["h2 unsettled GET", "h2 unsettled POST"],
)
site(
    "sizes of records",
    """
    ssl_buffer_size 3000;
    server { listen 127.0.0.1:@P0@; listen 127.0.0.1:@P1@ ssl; server_name a.test; root @DIR@/www; }
    server { listen 127.0.0.1:@P1@ ssl; server_name b.test; ssl_buffer_size 1k; root @DIR@/www; }
    server { listen 127.0.0.1:@P1@ ssl; server_name c.test; ssl_buffer_size 64k; root @DIR@/www; }
""",
    1,
    [
        f"tls records {name} /big.bin {version}"
        for name in ("a.test", "b.test", "c.test", "d.test")
        for version in ("1.2", "1.3")
    ],
)
# With tickets, names of TLS 1.2 are the client's, who takes them from tickets that only we renew.
site(
    "what a session is called",
    """
        server {
            listen 127.0.0.1:@P0@; listen 127.0.0.1:@P1@ ssl; ssl_session_tickets off;
            ssl_session_cache shared:sessions:1m; return 200 "[$ssl_session_id]";
        }
    """,
    1,
    ["tls session a.test 1.2", "tls session a.test 1.3"],
)
QUIC = """
    server {
        listen 127.0.0.1:@P0@; listen 127.0.0.1:@P0@ quic; root @DIR@/www; server_name a.test; %s\n
    }
    server {
        listen 127.0.0.1:@P0@ quic; root @DIR@/www; server_name b.test;
        http3_max_concurrent_streams 9; http3_stream_buffer_size 9k;
        quic_active_connection_id_limit 4; quic_retry off; quic_gso off;
    }
"""
ALLOWS = "quic allows %s streams stream uni data ids idle"
site(
    "HTTP/3: what clients are allowed",
    QUIC
    % (
        "http3_max_concurrent_streams 7; http3_stream_buffer_size 10k; "
        "quic_active_connection_id_limit 3; keepalive_timeout 50;"
    ),
    0,
    # The first server of an address speaks for all.
    [ALLOWS % "a.test", ALLOWS % "b.test"],
)
site(
    "HTTP/3: what clients are allowed is inherited",
    (
        "http3_max_concurrent_streams 8; http3_stream_buffer_size 20k; "
        "quic_active_connection_id_limit 5;"
    )
    + QUIC % "",
    0,
    [ALLOWS % "a.test"],
)
site(
    "HTTP/3: what clients are allowed by itself",
    QUIC % "",
    0,
    ["quic allows a.test streams ids idle"],
)
site("HTTP/3: datagrams cut by the kernel", QUIC % "quic_gso on;", 0, ["quic get a.test /big.bin"])
site(
    "HTTP/3: datagrams one by one",
    QUIC % "quic_gso off;",
    0,
    ["quic get a.test /big.bin", "quic get b.test /big.bin"],
)
site(
    "HTTP/3: addresses are proven",
    QUIC % "quic_retry on; quic_gso off;",
    0,
    [
        "quic get a.test /hello.txt",
        "quic again a.test",
        f"quic damaged a.test 00 {'5a' * 60} {'00' * 90}",
    ],
)
site(
    "HTTP/3: addresses are proven everywhere",
    "quic_retry on; quic_gso off;" + QUIC % "",
    0,
    ["quic get a.test /hello.txt"],
)
site(
    "HTTP/3: addresses are believed",
    QUIC % "quic_retry off; quic_gso off;",
    0,
    [
        "quic get a.test /hello.txt",
        "quic again a.test",
        f"quic damaged a.test 00 {'5a' * 60} {'00' * 90}",
    ],
)

for size in ("0", "16", "17", "100m", "x", "-1"):
    http_mistake(f"http2_recv_buffer_size {size};")
for text in (
    "http2_chunk_size 0;",
    "http2_chunk_size 1024m;",
    "http2_chunk_size -1;",
    "http2_body_preread_size 2147483647;",
    "http2_body_preread_size 2048m;",
    "http2_body_preread_size 3000m;",
    "quic_active_connection_id_limit -1;",
    "quic_active_connection_id_limit x;",
    "quic_gso x;",
    "quic_retry x;",
    "http3_stream_buffer_size x;",
    "http3_max_concurrent_streams x;",
    "ssl_buffer_size x;",
    "http2_max_concurrent_streams x;",
):
    server_mistake(text)
for text in (
    "http2_chunk_size 0;",
    "http2_chunk_size x;",
    "http2_chunk_size 1 2;",
    "http2_body_preread_size 1;",
    "ssl_buffer_size 1k;",
    "quic_gso on;",
    "quic_retry on;",
    "http3_stream_buffer_size 1k;",
):
    location_mistake(text)
