"""Owns: configurations about who a client is, and about variables made of addresses and hashes."""

from ..mistake import http as http_mistake
from ..mistake import server as server_mistake
from ..site import http, server
from ..text import words

WHO = '"[$remote_addr][$realip_remote_addr][$proxy_add_x_forwarded_for]"'
WHOSE = '"$who' + WHO[1:]
ADDRESSES = [
    "192.0.2.1",
    "192.0.2.1:80",
    "[2001:db8::1]:80",
    "[2001:db8::1]",
    "2001:db8::1",
    "192.0.2.1:0",
    "192.0.2.1:99999",
    "192.0.2",
    "x",
    "192.0.2.1, 198.51.100.7",
    "198.51.100.7,192.0.2.1",
    "unix:",
    "192.0.2.1:",
    "01.2.3.4",
    "192.0.2.1,",
    "192.0.2.1, ,",
    "",
    "192.0.2.256",
    "[192.0.2.1]:80",
    "192.0.2.1;198.51.100.7",
    ",192.0.2.1",
    "fe80::1%eth0",
    "255.255.255.255",
    "1..2.3",
    "1.2.3.4.5",
]
LISTS = [
    ["192.0.2.1"],
    ["192.0.2.1, 10.0.0.1"],
    ["10.0.0.1, 10.0.0.2"],
    ["192.0.2.1, 10.0.0.1,10.0.0.2"],
    ["192.0.2.1", "10.0.0.1"],
    ["10.0.0.1", "192.0.2.1"],
    ["192.0.2.1, 198.51.100.7", "10.0.0.1, 10.0.0.2"],
    ["x, 10.0.0.1"],
    ["x", "10.0.0.1"],
    ["192.0.2.1, x"],
    ["192.0.2.1", "x"],
    ["10.0.0.5:80, 10.0.0.1:90"],
    ["10.0.0.1", ""],
    ["192.0.2.1,, ,10.0.0.1"],
    ["x 10.0.0.1"],
    ["[2001:db8::1]:80, 10.0.0.1"],
    ["10.0.0.1 , "],
    [",10.0.0.1"],
    ["10.0.0.3", "x", "10.0.0.1"],
]


def forwarded(path: str, name: str = "X-Forwarded-For") -> list[str]:
    """A request for each of LISTS."""
    return [
        " | ".join([f"GET {path}"] + [f"{name}: {value}" for value in values]) for values in LISTS
    ]


server(
    "real addresses",
    f"set_real_ip_from 127.0.0.1; return 200 {WHO};",
    [f"GET / | X-Real-IP: {address}" for address in ADDRESSES]
    + ["GET / | X-Real-IP: 192.0.2.1 | X-Real-IP: 192.0.2.2", "GET /"],
)
server(
    "real addresses with ports",
    """
        set_real_ip_from 127.0.0.0/8;
        location /next { return 204; }
        location / { return 200 "$remote_addr $remote_port"; }
    """,
    [
        f"GET / | X-Real-IP: {address}"
        for address in ("192.0.2.1:80", "[::1]:81", "192.0.2.1", "[192.0.2.1]:82")
    ],
)
server(
    "forwarded addresses",
    f"""
        set_real_ip_from 127.0.0.1; set_real_ip_from 10.0.0.0/8; real_ip_header X-Forwarded-For;
        return 200 {WHO};
    """,
    forwarded("/"),
)
server(
    "forwarded addresses, recursive",
    f"""
        set_real_ip_from 127.0.0.1; set_real_ip_from 10.0.0.0/8; real_ip_header X-Forwarded-For;
        real_ip_recursive on; return 200 {WHO};
    """,
    forwarded("/"),
)
server(
    "addresses in another field",
    f"""
        set_real_ip_from 127.0.0.1; set_real_ip_from 10.0.0.0/8; real_ip_header x-forwarded-for;
        real_ip_recursive on; return 200 {WHO};
    """,
    forwarded("/"),
)
server(
    "strangers are not believed",
    f"""
        set_real_ip_from 192.0.2.0/24; set_real_ip_from unix:; set_real_ip_from ::1;
        return 200 {WHO};
    """,
    ["GET / | X-Real-IP: 192.0.2.1"],
)
http(
    "real addresses by place",
    f"""
    set_real_ip_from 127.0.0.1; real_ip_header X-A;
    map $remote_addr $who {{ 192.0.2.1 one; 192.0.2.2 two; default other; }}
    server {{ listen 127.0.0.1:@P0@; root @DIR@/www;
        location /early {{ return 200 {WHOSE}; }}
        location /b {{ real_ip_header X-B; try_files /x @show; }}
        location /none {{ set_real_ip_from 192.0.2.9; try_files /x @show; }}
        location @show {{ return 200 {WHOSE}; }}
        location /deny {{ deny 192.0.2.1; allow all; try_files /x @show; }}
        location /allow {{ allow 192.0.2.1; deny all; try_files /hello.txt =404; }}
        location /late {{ real_ip_header X-B; deny 192.0.2.2; try_files /x @show; }}
        location /page {{ error_page 404 /early; }}
    }}
""",
    [
        f"GET {path} | X-A: {a} | X-B: {b}"
        for path in ("/early", "/b", "/none", "/deny", "/allow", "/late", "/page", "/hello.txt")
        for a, b in (
            ("192.0.2.1", "192.0.2.2"),
            ("x", "192.0.2.2"),
            ("192.0.2.2", "192.0.2.1"),
            ("192.0.2.3:7", ""),
        )
    ],
    errors=True,
)

for text in (
    "set_real_ip_from;",
    "set_real_ip_from a b;",
    "set_real_ip_from 1.2.3.4/33;",
    "set_real_ip_from 1.2.3.4/8;",
    "set_real_ip_from unix:/x;",
    "set_real_ip_from all;",
    "set_real_ip_from nohost.invalid;",
    "set_real_ip_from [::1];",
    "set_real_ip_from 2001::/129;",
    "set_real_ip_from 1.2.3.4:80;",
    "set_real_ip_from localhost;",
    "set_real_ip_from '';",
    "set_real_ip_from 10/8;",
    "real_ip_header;",
    "real_ip_header a; real_ip_header b;",
    "real_ip_header '';",
    "real_ip_recursive yes;",
    "real_ip_recursive on; real_ip_recursive on;",
):
    http_mistake(text)
server_mistake("if ($uri) { set_real_ip_from 1.1.1.1; }")
server_mistake("location / { if ($uri) { real_ip_header X; } }")

# The header of the PROXY protocol, and what is asked behind it; sent as it is.
ASK = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
SAID = (
    '"[$proxy_protocol_addr][$proxy_protocol_port][$proxy_protocol_server_addr][$proxy_protoc'
    "ol_server_port][$remote_addr]"
    "[$proxy_protocol_tlv_alpn][$proxy_protocol_tlv_0x01][$proxy_protocol_tlv_authority][$pro"
    "xy_protocol_tlv_0x2][$proxy_protocol_tlv_unique_id]"
    "[$proxy_protocol_tlv_netns][$proxy_protocol_tlv_0xEA][$proxy_protocol_tlv_ssl_version][$"
    "proxy_protocol_tlv_ssl_cn]"
    '[$proxy_protocol_tlv_ssl_cipher][$proxy_protocol_tlv_ssl_verify]"'
)
LINES = [
    "TCP4 192.0.2.1 198.51.100.7 80 90",
    "TCP6 2001:db8::1 ::2 80 90",
    "UNKNOWN",
    "UNKNOWN a b c",
    "UNKNOWNx",
    "TCP4 192.0.2.1 198.51.100.7 80",
    "TCP4 999.2.3.4 198.51.100.7 80 90",
    "TCP4 192.0.2.1 198.51.100.7 99999 90",
    "TCP4 192.0.2.1 198.51.100.7 80 99999",
    "TCP4 192.0.2.1 198.51.100.7 0 0",
    "TCP4 192.0.2.1  198.51.100.7 80 90",
    "TCP4 x 198.51.100.7 80 90",
    "TCP4 abc def 80 90",
    "TCP5 192.0.2.1 198.51.100.7 80 90",
    "TCP",
    "",
    "TCP4",
    "TCP4 192.0.2.1 198.51.100.7 80 90 ",
    "TCP4 192.0.2.1 198.51.100.7 080 +90",
    "TCP4 ::1 ::2 080 90",
    "TCP4  198.51.100.7 80 90",
    "TCP4 192.0.2.1 198.51.100.7  90",
]


def field(kind: int, value: bytes) -> bytes:
    """One value of the second version of the PROXY protocol."""
    return bytes([kind]) + len(value).to_bytes(2, "big") + value


def binary(version_command: int, family: int, rest: bytes) -> bytes:
    """A head of the second version of the PROXY protocol."""
    signature = b"\r\n\r\n\0\r\nQUIT\n"
    return signature + bytes([version_command, family]) + len(rest).to_bytes(2, "big") + rest


V4 = bytes([192, 0, 2, 1, 198, 51, 100, 7, 0, 80, 0, 90])
V6 = bytes([0x20, 1, 0x0D, 0xB8]) + bytes(11) + b"\1" + bytes(15) + b"\2" + bytes([0, 80, 0, 90])
INSIDE = b"\1\0\0\0\5" + field(0x21, b"TLSv1.3") + field(0x22, b"cn!") + field(0x23, b"CIPHER")
FIELDS = (
    field(1, b"h2")
    + field(2, b"auth.test")
    + field(5, b"uid")
    + field(0x30, b"ns")
    + field(0xEA, b"vpce")
    + field(0x20, INSIDE)
)
BINARY = [
    binary(0x21, 0x11, V4),
    binary(0x21, 0x11, V4 + FIELDS),
    binary(0x21, 0x21, V6),
    binary(0x21, 0x21, V6 + FIELDS),
    binary(0x20, 0x11, V4),
    binary(0x20, 0, b""),
    binary(0x21, 0, b"xyz"),
    binary(0x21, 0x31, bytes(216)),
    binary(0x21, 0x12, V4),
    binary(0x31, 0x11, V4),
    binary(0x11, 0x11, V4),
    binary(0x22, 0x11, V4),
    binary(0x21, 0x11, V4[:8]),
    binary(0x21, 0x21, V4),
    binary(0x21, 0x41, V4),
    binary(0x21, 0x11, V4 + field(1, b"first") + field(1, b"second")),
    binary(0x21, 0x11, V4 + field(4, b"x" * 5000)),
    b"\r\n\r\n\0\r\nQUITx!\x11\0\0",
]
HEADERS = (
    [(f"PROXY {line}", f"PROXY {line}\r\n".encode() + ASK) for line in LINES]
    + [(repr(header)[2:60], header + ASK) for header in BINARY]
    + [
        ("no header", ASK),
        ("in capitals only", b"proxy TCP4 1.2.3.4 5.6.7.8 80 90\r\n" + ASK),
        ("LF alone", b"PROXY TCP4 1.2.3.4 5.6.7.8 80 90\n" + ASK),
        (
            "two headers",
            b"PROXY TCP4 1.2.3.4 5.6.7.8 80 90\r\nPROXY TCP4 1.2.3.4 5.6.7.8 80 90\r\n" + ASK,
        ),
    ]
)
http(
    "the PROXY protocol",
    f"""
        server {{ listen 127.0.0.1:@P0@; }}
        server {{ listen 127.0.0.1:@P2@ proxy_protocol; return 200 {SAID}; }}
    """,
    HEADERS,
    port=2,
    alone=True,
    errors=True,
)
http(
    "real addresses by the PROXY protocol",
    f"""
        server {{ listen 127.0.0.1:@P0@; }}
        server {{
            listen 127.0.0.1:@P2@ proxy_protocol; set_real_ip_from 127.0.0.1;
            real_ip_header proxy_protocol; return 200 "[$proxy_protocol_addr]"{WHO[1:]};
        }}
    """.replace('"[$proxy_protocol_addr]"[', '"[$proxy_protocol_addr]['),
    [case for case in HEADERS if b"999." not in case[1]],
    port=2,
    alone=True,
)
http(
    "fields of the PROXY protocol that are not",
    """
        server { listen 127.0.0.1:@P0@; }
        server {
            listen 127.0.0.1:@P2@ proxy_protocol;
            return 200 "[$proxy_protocol_tlv_alpn][$proxy_protocol_tlv_nope]";
        }
    """,
    [
        ("cut", binary(0x21, 0x11, V4 + field(1, b"h2")[:-1]) + ASK),
        ("one byte", binary(0x21, 0x11, V4 + b"\1") + ASK),
        ("cut behind", binary(0x21, 0x11, V4 + field(1, b"a") + b"\2\0") + ASK),
    ],
    port=2,
    alone=True,
    errors=True,
)

GEO = r"""
    geo $net {
        default d; 127.0.0.0/8 loop; 10.0.0.0/8 ten; 10.1.0.0/16 one; 10.1.2.0/24 two;
        10.1.2.3 three; 10.1.2.4/32 four; 2001:db8::/32 doc; 2001:db8::1 self;
    }
    geo $arg_a $by_arg {
        0.0.0.0/0 all; 192.0.2.0/24 net; 192.0.2.128/25 half; ::/0 six; ::ffff:192.0.2.1 mapped;
        255.255.255.255 none; delete 192.0.2.128/25;
    }
    geo $arg_a $plain { 192.0.2.1 $uri; 192.0.2.2 ""; }
    geo $arg_a $ranged {
        ranges; default out; 10.0.0.0-10.3.255.255 wide; 10.0.0.10-10.0.0.20 in;
        10.0.0.15-10.0.0.15 deep; 10.1.0.0-10.1.255.255 whole; 192.0.2.0-192.0.2.9 nine;
        delete 192.0.2.0-192.0.2.9;
    }
    geo $told { default no; proxy 127.0.0.1; proxy 10.0.0.0/8; 192.0.2.0/24 yes; 10.0.0.0/8 ten; }
    geo $told_on {
        default no; proxy 127.0.0.1; proxy 10.0.0.0/8; proxy_recursive; 192.0.2.0/24 yes;
        10.0.0.0/8 ten;
    }
    geo $empty { }
    geo $twice { 127.0.0.1 one; 127.0.0.1 two; }
    geo $again { 127.0.0.1 one; }
    geo $again { default new; }
    geo $included { include @DIR@/geo-*.none; default included; volatile; }
    map $net $of_net { ten TEN; default "not $net"; }
"""
http(
    "geo",
    GEO
    + """
        server {
            listen 127.0.0.1:@P0@; set_real_ip_from 127.0.0.1;
            return 200 "[$net][$by_arg][$plain][$ranged][$told][$told_on][$empty][$twice][$again][$included][$of_net]";
        }
    """,  # noqa: E501
    [
        f"GET / | X-Real-IP: {ip}"
        for ip in words("""
         10.0.0.1 10.1.0.1 10.1.2.0 10.1.2.3 10.1.2.4 11.0.0.0 2001:db8::1 2001:db8::2
         2001:db9:: ::ffff:10.1.2.3
     """)
    ]
    + [
        f"GET /?a={ip}"
        for ip in (
            "",
            "x",
            "192.0.2.1",
            "192.0.2.2",
            "192.0.2.200",
            "10.0.0.9",
            "10.0.0.10",
            "10.0.0.15",
            "10.0.0.16",
            "10.0.0.21",
            "10.1.2.3",
            "10.3.255.255",
            "10.4.0.0",
            "::1",
            "::ffff:192.0.2.1",
            "192.0.2.1:80",
            "255.255.255.255",
            "192.0.2.1,1.1.1.1",
            "192.0.02.1",
        )
    ]
    + [
        f"GET / | X-Forwarded-For: {text}"
        for text in ("192.0.2.1", "192.0.2.1, 10.0.0.1", "8.8.8.8", "x", "192.0.2.1, 8.8.8.8")
    ],
)
SPLIT = r"""
    split_clients $arg_a $half { 50% one; * two; }
    split_clients "$arg_a$uri" $third { 33.33% a; 33.33% b; 0.01% c; * d; }
    split_clients $arg_a $some { 0.5% a; 10% b$uri; }
    split_clients $arg_a $all { 99.99% x; 0.01% y; }
    split_clients k$arg_a $empty { }
    split_clients x $rest { * all; }
"""
http(
    "split_clients",
    SPLIT + 'server { listen 127.0.0.1:@P0@; return 200 "$half|$third|$some|$all|$empty|$rest"; }',
    ["GET /"]
    + [f"GET /?a={'x' * (n % 7)}{n}" for n in range(80)]
    + ["GET /?a=%c3%a9", "GET /?a=192.0.2.1", "GET /?a=2001:db8::1"],
)

for text in (
    "geo { }",
    "geo a { }",
    "geo $a b { }",
    "geo $r $a { }",
    "geo $a $b $c { }",
    "geo $a;",
    "geo $a { default 1; default 2; }",
    "geo $a { default; }",
    "geo $a { 1.2.3.4 a b; }",
    "geo $a { 1.2.3.4; }",
    "geo $a { 1.2.3.4/8 a; }",
    "geo $a { 1.2.3.4/33 a; }",
    "geo $a { 1.2.3 a; }",
    "geo $a { 1.2.3.4 a; 1.2.3.4 b; }",
    "geo $a { 1.2.3.0/24 a; 1.2.3.0/24 b; 1.2.3.0/24 c; }",
    "geo $a { ::1 a; ::1 b; }",
    "geo $a { delete 1.2.3.4; }",
    "geo $a { 1.2.3.4 a; delete 1.2.3.4; }",
    "geo $a { delete x; }",
    "geo $a { ranges x; }",
    "geo $a { 1.2.3.4 a; ranges; }",
    "geo $a { default x; ranges; 1.2.3.4-1.2.3.5 a; }",
    "geo $a { ranges; 1.2.3.4 a; }",
    "geo $a { ranges; 1.2.3.5-1.2.3.4 a; }",
    "geo $a { ranges; 1.2.3.4-1.2.3.x a; }",
    "geo $a { ranges; 1.2.3.4-1.2.3.8 a; 1.2.3.4-1.2.3.8 b; }",
    "geo $a { ranges; 1.2.3.4-1.2.3.8 a; 1.2.3.6-1.2.3.10 b; }",
    "geo $a { ranges; 1.2.3.4-1.2.3.8 a; 1.2.3.0-1.2.3.10 b; }",
    "geo $a { ranges; delete 1.2.3.4-1.2.3.8; }",
    "geo $a { ranges; 1.2.3.4-1.2.3.8 a; delete 1.2.3.4-1.2.3.6; }",
    "geo $a { ranges; default a; default b; }",
    "geo $a { ranges; ::1-::2 a; }",
    "geo $a { ranges; 1.0.0.0-1.2.0.0 a; 1.0.0.0-1.2.0.0 b; }",
    "geo $a { proxy 1.2.3.4/8; }",
    "geo $a { proxy x; }",
    "geo $a { proxy unix:; }",
    "geo $a { proxy_recursive on; }",
    "geo $a { proxy; }",
    "geo $a { include none.conf; }",
    "geo $a { 1.2.3.4 a { } }",
    "geo $a { ::/0 y; default z; }",
    "geo $a { default z; ::/0 y; 0.0.0.0/0 q; }",
    "geo $a { all b; }",
    "geo $a { 10/8 b; }",
    "geo $uri { 1.1.1.1 a; }",
    "geo $nope $a { }",
    "geo $a { ranges; 0.0.0.0-255.255.255.255 a; }",
    "geo $a { ranges; 1.2.3.4-1.2.3.5-1.2.3.6 a; }",
    "split_clients;",
    "split_clients a $b;",
    "split_clients a b { }",
    "split_clients a $b { 50% x; 60% y; }",
    "split_clients a $b {\n50% x;\n60% y;\n}",
    "split_clients a $b { 0.555% x; }",
    "split_clients a $b { 0% x; }",
    "split_clients a $b { 50 x; }",
    "split_clients a $b { x% y; }",
    "split_clients a $b { * x; 50% y; }",
    "split_clients a $b { 101% y; }",
    "split_clients a $b { 99.99% y; 0.02% z; }",
    "split_clients $nope $b { 50% a; }",
    "split_clients a $uri { 50% a; }",
    "split_clients a $b { -5% a; }",
    "split_clients a $b { 50% x { } }",
    "split_clients a $b { 5.% a; .5% b; }",
    "split_clients a $b { 99999999999999999999% x; }",
):
    http_mistake(text)

MAPS = r"""
    map $arg_a $plain {
        default d; one 1; TWO 2; "" empty; \default word; \hostnames host; \~tilde t;
        ~^re(?<tail>.*)$ "re$tail"; ~*^ci(.*)$ "ci$1"; ~x$ $uri; \\back b; 'a b' blank;
    }
    map $arg_a $host_of {
        hostnames; default d; example.com exact; *.example.com suffix; .example.org both;
        mail.* prefix; www.example.com www; ~^r\d $arg_a;
    }
    map $arg_a$arg_b $both { onetwo joined; default "$arg_b$arg_a"; }
    map $plain $of_plain { 1 first; re of_re; default other; }
    map $arg_a $nothing { one 1; }
    map $arg_b $flight { volatile; default "$arg_a-$arg_b"; }
    map $arg_a $dollar { one $host; two ${uri}x; default "q$arg_b?"; }
    map "$arg_a:$request_method" $pair { "one:GET" get; ~^one:(?<m>.+) $m; }
    map $http_x_map $field { "~^(.)(.)" "$2$1"; default none; }
    map $arg_a $by_rule { "~^$" matched; ~. filled; default d; }
    map $arg_a $host_by_rule { hostnames; ~^ matched; default d; }
"""
http(
    "map",
    MAPS
    + """
        server {
            listen 127.0.0.1:@P0@;
            location /c { if ($uri ~ ^/c(.*)$) { return 200 "$1|$plain|$1"; } }
            location / {
                return 200 "$plain|$host_of|$both|$of_plain|$nothing|$flight|$dollar|$pair|$field|\
$by_rule|$host_by_rule";
            }
        }
    """,
    [
        f"GET /?a={a}"
        for a in (
            "",
            ".",
            "one",
            "ONE",
            "two",
            "default",
            "hostnames",
            "~tilde",
            "retail",
            "CIthing",
            "xx",
            "%5Cback",
            "a%20b",
            "example.com",
            "EXAMPLE.com.",
            "a.example.com",
            "www.example.com",
            "a.b.example.com",
            "example.org",
            "x.example.org",
            "mail.x",
            "mail.",
            "r1",
            "example.com.",
            "re",
            "a+b",
        )
    ]
    + [
        "GET /?a=one&b=two",
        "GET /?a=two&b=one",
        "HEAD /?a=one",
        "POST /?a=one",
        "GET /cre?a=rest",
        "GET /c?a=one",
        "GET / | X-Map: ab",
        "GET / | X-Map: a",
    ],
)
for text in (
    "map a b { }",
    "map $a { }",
    "map $uri $b;",
    "map $uri $b { a b c; }",
    "map $uri $b { a; }",
    "map $uri $b { default 1; default 2; }",
    "map $uri $b { a 1; A 2; }",
    "map $uri $b { hostnames; *.a 1; *.a 2; }",
    "map $uri $b { hostnames; .a.com 1; a.com 2; }",
    "map $uri $b { hostnames; a*b 1; }",
    "map $uri $b { ~( 1; }",
    "map $uri $b { a $nope; }",
    "map $nope $b { a 1; }",
    "map $uri $uri { a 1; }",
    "map $uri $b { include none; }",
    "map $uri $b { a { } }",
    "map $uri $b { volatile x; }",
    "map $uri $b { hostnames x; }",
):
    http_mistake(text)
server(
    "referers again",
    r"""
        location /a {
            valid_referers none blocked server_names *.example.com example.* www.example.org/galleries/ ~\.google\.;
            if ($invalid_referer) { return 403; }
            return 200 "ok[$invalid_referer]";
        }
        location /b { valid_referers server_names; return 200 "[$invalid_referer]"; }
        location /c { return 200 "[$invalid_referer]"; }
        location /d {
            valid_referers none; valid_referers example.com; return 200 "[$invalid_referer]";
        }
    """,  # noqa: E501
    [
        f"GET {path} | Referer: {referer}"
        for path in ("/a", "/b", "/c", "/d")
        for referer in (
            "",
            "http://localhost/",
            "https://localhost/x",
            "http://a.example.com/x",
            "HTTP://A.EXAMPLE.com",
            "http://example.com",
            "http://example.net:8080/x",
            "http://www.example.org/",
            "http://www.example.org/galleries/x",
            "http://maps.google.de/x",
            "www.example.com",
            "xyz",
            "ftp://example.com",
            "http://other/",
            "http://",
        )
    ]
    + ["GET /a", "GET /b", "GET /d"],
)

VALUES = words("""
    uri request_uri args is_args host remote_user server_addr server_name server_protocol
    scheme https request request_method request_length request_completion request_filename
    request_body request_body_file document_root realpath_root connection_requests
    limit_rate status http2 http3 content_type content_length gzip_ratio ssl_protocol
    ssl_cipher ssl_ciphers ssl_curve ssl_curves ssl_server_name ssl_session_reused
    ssl_early_data ssl_alpn_protocol ssl_client_verify ssl_client_s_dn invalid_referer
    proxy_host proxy_port proxy_add_x_forwarded_for upstream_addr upstream_status
    upstream_cache_status proxy_protocol_addr proxy_protocol_port http_x sent_http_x
    sent_trailer_x cookie_x arg_x upstream_http_x bytes_sent body_bytes_sent
    binary_remote_addr sent_http_content_type http_cookie http_via request_port
    is_request_port
""")
server(
    "values at once",
    f"location / {{ return 200 '{' '.join(f'{name}=[${name}]' for name in VALUES)}'; }}",
    [
        "GET /a%20b?x=1&y | X: 1 | Cookie: x=2; y=3",
        "GET / HTTP/1.0",
        "HEAD /",
        "GET / | Host: other:81 | Authorization: Basic dTpw",
    ],
)
