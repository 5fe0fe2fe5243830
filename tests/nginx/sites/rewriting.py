"""Owns: configurations about rewriting, variables, access and passwords, and mistakes in them."""

from ..mistake import http as http_mistake
from ..mistake import location as location_mistake
from ..mistake import server as server_mistake
from ..site import http, server
from ..text import words

SHOW = 'location / { return 200 "[$uri][$args][$is_args][$request_uri]"; }'


def pages(path: str, *queries: str) -> list[str]:
    """A request for `path` with each of these queries."""
    return [f"GET {path}{query}" for query in queries]


server(
    "set and groups",
    r"""
    location ~ ^/s/(.*)$ { set $x $1; return 200 "[$x][$1]"; }
    location ~ ^/s2/(.*)$ { rewrite ^/nomatch /x; set $x $1; return 200 "[$x][$1]"; }
    location ~ ^/s3/(?<r>.*)$ {
        rewrite ^/s3/(.*)$ /s4/$1?a=$1; set $x $r; set $y $1; set $z "q?$1";
        return 200 "[$x][$y][$z][$uri][$args]";
    }
    location ~ ^/s5/(?<r>.*)$ {
        rewrite ^/s5/(.*)$ /s4/$1?a=$1; set $w $1; rewrite ^/s4/(.*) /s6/$1; set $y $1;
        return 200 "[$w][$y][$uri][$args]";
    }
    location /eq/ {
        if ($uri ~ ^/eq/(.*)$) { set $a $1; }
        if ($a = $1) { return 200 "same $a $1"; }
        return 200 "[$a][$1]";
    }
""",
    [
        "GET /s/a%20b",
        "GET /s/a+b?x",
        "GET /s/a%26b",
        "GET /s/plain",
        "GET /s2/a%20b%26",
        "GET /s3/a%20b?o=1",
        "GET /s3/ab",
        "GET /s5/a%20b",
        "GET //s/a%20b",
        "GET /./s/a%20b",
        "GET /s/a%20b/./c",
        "GET /s/%C3%A9;x",
        "GET /s3/a%3fb%23",
        "GET /eq/a%20b",
        "GET /eq/ab",
        "GET /s/?a%20b",
    ],
)
server(
    "rewrite to an address",
    r"""
    location /r1 { rewrite ^/r1/(.*)$ http://o.test/$1?x=$1; }
    location /r2 { rewrite ^/r2/(.*)$ /n/$1 redirect; }
    location /r3 { rewrite ^/r3/(.*)$ /n/$1? permanent; }
    location /r4 { rewrite ^/r4/(.*)$ $scheme://$host/$1; }
    location /r5 { rewrite ^/r5/(.*)$ /n$uri redirect; }
    location /r6 { rewrite ^/r6/(.*)$ "/n/a%20b%41%3f%zz%2" redirect; }
    location /r7 { rewrite ^/r7/(.*)$ http://o.test/$1 last; }
    location /r8 { rewrite ^/r8/(.*)$ http://o.test/$1 permanent; }
    location /r9 { rewrite ^/r9/(.*)$ /?q=$1&r=$args? redirect; }
    location /ra { rewrite ^/ra n redirect; }
    location /rb { rewrite ^/rb /n redirect; error_page 302 /caught; }
    location /caught { return 200 caught; }
    location /rc { rewrite ^/rc(.*)$ "/%$1" redirect; }
    location /rd { absolute_redirect off; rewrite ^/rd /n permanent; }
    location /re { server_name_in_redirect on; rewrite ^/re /n permanent; }
    location /rf { rewrite ^/rf $arg_none redirect; }
""",
    [
        "GET /r1/a%20b%2f%3f%c3%a9?q=1",
        "GET /r2/a%20b%3fc%25?q=1",
        "GET /r2/x;y",
        "GET /r3/x%20?q=1",
        "GET /r4/a%20b?q",
        "GET /r5/a%3b%3f?q=1",
        "GET /r6/?q=1",
        "GET /r6/",
        "GET /r7/a",
        "GET /r8/a?b",
        "GET /r9/a%26b?c=d",
        "GET /ra",
        "GET /rb",
        "GET /rc41",
        "GET /rc4",
        "GET /rczz1",
        "GET /rc",
        "GET /rd?x",
        "GET /re",
        "GET /rf",
        "HEAD /r2/x",
        "POST /r2/x",
        "GET /r2/x HTTP/1.0",
        "GET /r2/x | Host: other.test:99",
    ],
    errors=True,
)
server(
    "rewrite inside",
    r"""
    location /a1 { rewrite ^/a1 /t?b=1; } location /a2 { rewrite ^/a2 /t?; }
    location /a3 { rewrite ^/a3 "/t?$arg_none"; } location /a4 { rewrite ^/a4 /t??; }
    location /a5 { rewrite ^/a5 "/t?a?b"; } location /a6 { rewrite ^/a6 "/t$is_args$args"; }
    location /a7 { rewrite ^/a7 "/t?$args"; } location /a8 { rewrite ^/a8 "?"; }
    location /a9 { rewrite ^/a9 $arg_none; } location /b1 { rewrite ^/b1 t; }
    location /t { return 200 "t[$uri][$args][$is_args][$request_uri]"; }
    location t { return 200 "T[$uri][$args]"; }
    location /loop { rewrite ^ /loop2 ; } location /loop2 { rewrite ^ /loop last; }
    location /self { rewrite ^ /self; }
    location /c1 { rewrite ^/c1 /hello.txt; break; return 200 no; }
    location /c2 { rewrite ^/c2 /hello.txt break; return 200 no; }
    location /c3 { if ($arg_a) { break; return 200 in; } return 200 out; }
    location /c4 { if ($arg_a) { rewrite ^ /hello.txt break; } return 200 out; }
    location /c5 { rewrite ^/c5(.*)$ /dir$1 break; }
    location /i1 { rewrite ^ /int/x last; } location /int { internal; return 200 "int $uri"; }
    location /n1 { rewrite ^ /@n last; } location @n { return 200 named; }
    location /m1 { rewrite ^/m1/(\d+)/(\w)$ /t/$2/$1 last; rewrite ^/m1/(.*)$ /t/other/$1 last; }
    location /m2 { rewrite (?<who>[a-z]+)$ /t?who=$who last; }
    location /m3 { rewrite ^/m3 /m4; rewrite ^/m4 /m5; rewrite ^/m5(.*) /t$1; }
    location = /e1 { error_page 404 = /e2; return 404; }
    location = /e2 { rewrite ^ /t/from-e2 last; }
    location /enc { rewrite ^/enc/(.*)$ /t/$1?x=$1&y=$arg_y last; }
    location /tf { rewrite ^/tf/(.*)$ /$1; try_files $uri =404; }
    location /tg { rewrite ^/tg/(.*)$ /$1 break; try_files $uri =404; }
""",
    [
        *pages("/a1", "?o=1", ""),
        *(f"GET /a{n}?o=1" for n in range(2, 10)),
        "GET /b1?o=1",
        "GET /loop",
        "GET /self",
        "GET /c1",
        "GET /c2",
        "GET /c3?a=1",
        "GET /c3",
        "GET /c4?a=1",
        "GET /c4",
        "GET /c5",
        "GET /c5/",
        "GET /c5/file.txt",
        "GET /i1",
        "GET /int",
        "GET /n1",
        "GET /m1/12/x?q=1",
        "GET /m1/other",
        "GET /m2/abc",
        "GET /m3/z",
        "GET /e1",
        "GET /enc/a%20b%2Bc%3Fd?y=1%202",
        "GET /enc/plain",
        "GET /tf/hello.txt",
        "GET /tg/hello.txt",
        "HEAD /c1",
        "POST /a1",
    ],
    errors=True,
)
# nginx tells of the first of these twice.
server(
    "rewrite under an alias",
    r"""
    add_header F "$request_filename" always;
    location /al/ {
        alias @DIR@/www/dir/; rewrite ^/al/x$ /al/file.txt break; rewrite ^/al/y$ /al/file.txt;
    }
    location ~ ^/are/(.*)$ { alias @DIR@/www/dir/$1; rewrite ^/are/x$ /are/file.txt break; }
""",
    ["GET /al/x", "GET /al/y", "GET /al/other.htm", "GET /are/x", "GET /are/file.txt"],
)
server(
    "server-level rewriting",
    r"""
    if ($arg_sv) { set $sv "s$arg_sv"; }
    if ($http_x_stop) { return 403; }
    if ($request_method = DELETE) { return 405 "no"; }
    rewrite ^/old(.*) /new$1 last; rewrite ^/old2 /never;
    rewrite ^/mid /mid2; rewrite ^/mid2 /mid3 break; rewrite ^/mid3 /mid4;
    rewrite ^/perm/(.*) /x/$1 permanent;
    if ($arg_r) { return 302 /elsewhere; }
    if ($arg_f) { rewrite ^ /hello.txt; }
    if (-f $document_root$uri.html) { rewrite ^(.*)$ $1.html last; }
    error_page 403 /denied; location = /denied { return 200 "denied $uri"; }
    location / { return 200 "[$sv][$uri][$args]"; }
    location = /hello.txt { } location = /page.html { }
""",
    [
        "GET /x?sv=1",
        "GET /x",
        "GET /oldx?sv=2",
        "GET /old2",
        "GET /mid",
        "GET /mid2",
        "GET /mid3",
        "GET /perm/a?b",
        "GET /?r=1",
        "GET /mid?r=1",
        "GET /any?f=1",
        "GET /page",
        "GET / | X-Stop: 1",
        "GET / | X-Stop: 0",
        "DELETE /",
        "GET /hello.txt",
    ],
)
server(
    "if",
    r"""
        add_header X-Outer o;
        location /if1 {
            add_header X-L l; set $a 0;
            if ($arg_a) { set $a 1; add_header X-I i; }
            if ($arg_b) { set $a 2$a; }
            return 200 "$a";
        }
        location /f1 {
            if (-f @DIR@/www/hello.txt) { set $f f; }
            if (-d @DIR@/www) { set $f "${f}d"; }
            if (-e @DIR@/www/nope) { set $f "${f}!"; }
            if (!-e @DIR@/www/nope) { set $f "${f}n"; }
            if (-x @DIR@/www/hello.txt) { set $f "${f}x"; }
            if (-x /bin) { set $f "${f}X"; }
            if (!-f @DIR@/www/hello.txt/a) { set $f "${f}N"; }
            if (-f "") { set $f "${f}E"; }
            if (-d @DIR@/www/hello.txt) { set $f Z; }
            return 200 $f;
        }
        location /m1 {
            if ($request_method = POST) { return 405; }
            if ($http_cookie ~* "id=([^;]+)(?:;|$)") { set $id $1; }
            return 200 "[$id][$1]";
        }
        location /m2 {
            if ($arg_x ~ ^(.)(.)?$) { return 200 "[$1][$2]"; }
            if ($arg_x !~ ^(\d+)$) { return 200 "n[$1]"; }
            return 200 "z[$1]";
        }
        location /m3 {
            if ($arg_x = "a b") { return 200 eq; }
            if ($arg_x != b) { return 200 ne; }
            return 200 b;
        }
        location /m4 {
            if ($http_user_agent ~* (curl|wget)) { return 403; }
            if ($http_user_agent !~* ^moz) { return 410; }
        }
        location /t1 { try_files /hello.txt =404; if ($arg_a) { set $z 1; } }
        location /t2 {
            root @DIR@/www/dir;
            if ($arg_a) { root @DIR@/www; }
            rewrite ^/t2(.*) $1 break;
        }
        location /t3 { alias @DIR@/www/dir/; if ($arg_a) { expires 1h; } }
        location /t4 {
            index other.htm;
            if ($arg_a) { add_header X-In 1 always; }
            rewrite ^ /dir/ break;
        }
        location /t5 {
            if ($arg_a) {
                gzip off; limit_rate 1000000; sendfile on; charset utf-8; access_log off;
                expires -1;
            }
            rewrite ^ /hello.txt break;
        }
        location /e1 { if ($arg_a) { error_page 404 /hello.txt; return 404; } return 404; }
        location /e2 {
            error_page 404 /hello.txt;
            if ($arg_a) { return 404; }
            if ($arg_b) { error_page 404 /digits.txt; return 404; }
            return 404;
        }
        location /e3 { default_type text/x; if ($arg_a) { return 200 in; } return 200 out; }
        location /k1 {
            if ($arg_a) { add_header X-A a; }
            if ($arg_b) { add_header X-B b; }
            if ($arg_c) { rewrite ^ /hello.txt break; }
            rewrite ^ /digits.txt break;
        }
        location /k2 {
            location ~ /k2/(.*)$ { if ($arg_a) { set $v "$1!"; } return 200 "$v|$1"; }
            return 200 outer;
        }
        location ~ ^/k3/(?<n>.*)$ { if ($n = stop) { return 402 $n; } return 200 "go $n"; }
        location @nm { if ($arg_a) { return 200 nm-a; } return 200 nm; }
        location /nm { try_files /nope @nm; }
    """,
    [
        "GET /if1",
        "GET /if1?a=1",
        "GET /if1?a=0",
        "GET /if1?a=00",
        "GET /if1?a=1&b=1",
        "GET /if1?b=1",
        "GET /f1",
        "GET /m1 | Cookie: a=b; ID=xyz; c=d",
        "GET /m1",
        "POST /m1",
        "GET /m2?x=a",
        "GET /m2?x=ab",
        "GET /m2?x=abc",
        "GET /m2?x=123",
        "GET /m3?x=a%20b",
        "GET /m3?x=b",
        "GET /m3",
        "GET /m4 | User-Agent: CURL/1",
        "GET /m4",
        "GET /m4 | User-Agent: Mozilla",
        "GET /t1",
        "GET /t1?a=1",
        "GET /t2/file.txt",
        "GET /t2/file.txt?a=1",
        "GET /t2/hello.txt?a=1",
        "GET /t3/file.txt",
        "GET /t3/file.txt?a=1",
        "GET /t4",
        "GET /t4?a=1",
        "GET /t5",
        "GET /t5?a=1",
        "GET /e1",
        "GET /e1?a=1",
        "GET /e2",
        "GET /e2?a=1",
        "GET /e2?b=1",
        "GET /e3",
        "GET /e3?a=1",
        "GET /k1",
        "GET /k1?a=1",
        "GET /k1?b=1",
        "GET /k1?a=1&b=1",
        "GET /k1?a=1&c=1",
        "GET /k1?c=1&b=1",
        "GET /k2/x?a=1",
        "GET /k2/x",
        "GET /k2",
        "GET /k3/stop",
        "GET /k3/on",
        "GET /nm",
        "GET /nm?a=1",
        "HEAD /if1?a=1",
        "POST /if1",
    ],
)
server(
    "variables of set",
    r"""
    location /u { return 200 "[$un][$un]"; } location /u2 { set $un 1; return 200 $un; }
    location /u3 { uninitialized_variable_warn off; return 200 "[$un]"; }
    location /q1 {
        set $limit_rate 1000000; set $q "$limit_rate"; set $limit_rate 900k;
        return 200 "$q $limit_rate";
    }
    location /q2 { set $limit_rate x; return 200 "$limit_rate"; }
    location /q3 {
        set $args "x=1&y"; return 200 "$args $arg_x $query_string $is_args $request_uri";
    }
    location /q4 { set $http_foo bar; return 200 "$http_foo"; }
    location /q5 { return 200 "$http_foo"; }
    location /q6 { set $arg_a "${arg_a}!"; return 200 "$arg_a $args"; }
    location /q7 { return 200 "$arg_a"; }
    location /s1 { set $v "a$arg_x"; set $v "$v$v"; return 200 $v; }
    location /s2 { set $KEPT "$kept$uri"; set $Kept "$KEPT|"; try_files /none /s3; }
    location /s3 { return 200 "$kept $uri"; }
    location /s4 { set $a "$host:$1"; set $b '$a;${a}x'; return 200 "$b"; }
    location /s5 { set $args $arg_next; rewrite ^ /s6 last; } location /s6 { return 200 "$args"; }
    location /s7 { set $args ""; return 200 "[$args][$is_args][$arg_a]"; }
""",
    [
        "GET /u",
        "GET /u2",
        "GET /u3",
        "GET /q1",
        "GET /q2",
        "GET /q3?z",
        "GET /q4",
        "GET /q4 | Foo: zz",
        "GET /q5 | Foo: zz",
        "GET /q5",
        "GET /q6?a=1",
        "GET /q7?a=1",
        "GET /s1?x=b",
        "GET /s1",
        "GET /s2",
        "GET /s4",
        "GET /s5?next=b&x=1",
        "GET /s7?a=1",
    ],
    errors=True,
)
http(
    "map",
    r"""
    map $arg_q $c1 { default $c2; } map $arg_q $c2 { a A; default D; }
    map $args $ma { "" none; a A; default "${args}!"; }
    map $arg_k $mcap {
        ~^(z)(.)$ "<$1$2>"; ~*^UP$ up; "~^(?<nm>q+)" "q $nm"; \~lit literal; exact "E"; EXACT2 e2;
    }
    map $k $mvol { volatile; a A; b B; } map $k $mnov { a A; b B; }
    map $http_x $mh {
        hostnames; default none; .a.com dota; *.b.com starb; m.* m; www.b.com wwwb;
        *.x.b.com longer; m.n.* mn; ~^re re;
    }
    map "$arg_a:$arg_b" $two { "1:2" yes; ~^1: one; default no; }
    map $arg_q $args2 { default $1; } map $uri $http_made { /made "made of $uri"; }
    map $arg_q $flag { 1 1; default 0; }
    map $status $is_error { ~^[45] 1; default 0; }
    map $arg_n $num { 0 zero; "" empty; }
    map $arg_k $inc { include @DIR@/map*.none; default nothing; }
    log_format m '$uri $is_error $flag'; access_log @LOGS@/access.log m if=$flag;
    server { listen 127.0.0.1:@P0@; server_name localhost;
    location /c { return 200 "$c1 $c2"; } location /ma { return 200 $ma; }
    location ~ /my(.) { return 200 "$1 $mcap $1"; } location /mcap { return 200 "$mcap|$nm"; }
    location /vol { set $k a; set $r1 $mvol; set $k b; set $r2 $mvol; return 200 "$r1$r2 $mnov"; }
    location /vol2 { set $k a; set $r1 $mnov; set $k b; set $r2 $mnov; return 200 "$r1$r2"; }
    location /mh { return 200 "[$mh]"; }
    location /two { return 200 $two; }
    location /made { return 200 "[$http_made]"; }
    location ~ ^/cap/(.*)$ { return 200 "$args2"; } location /num { return 200 "[$num]"; }
    location /flag { if ($flag) { return 200 on; } return 404 off; }
    location /inc { return 200 $inc; }
    location /set { set $flag 5; return 200 $flag; } location /loop { return 200 ok; }
    } """,
    [
        "GET /c",
        "GET /c?q=a",
        "GET /ma",
        "GET /ma?a",
        "GET /ma?b",
        "GET /myq?k=zy",
        "GET /myq?k=none",
        "GET /mcap?k=up",
        "GET /mcap?k=qqq",
        "GET /mcap?k=~lit",
        "GET /mcap?k=EXACT",
        "GET /mcap?k=exact2",
        "GET /vol",
        "GET /vol2",
        *(
            f"GET /mh | X: {h}"
            for h in (
                "x.A.com.",
                "a.com",
                "m.q",
                "zz",
                "www.b.com",
                "y.b.com",
                "b.com",
                "z.x.b.com",
                "m.n.o",
                "m.",
                "",
                "a.com..",
                "regex",
                "REGEX",
            )
        ),
        "GET /mh",
        "GET /two?a=1&b=2",
        "GET /two?a=1",
        "GET /two",
        "GET /made",
        "GET /made | Made: x",
        "GET /cap/one",
        "GET /num?n=0",
        "GET /num",
        "GET /num?n=1",
        "GET /flag?q=1",
        "GET /flag",
        "GET /flag?q=10",
        "GET /inc?k=a",
        "GET /set",
    ],
    errors=True,
)
server(
    "matches that take too long",
    r"""
    location /re { rewrite ^/re(a+)+$ /x; return 200 ok; }
    location ~ ^/lo(x+)+$ { return 200 lo; }
    location /if { if ($arg_k ~ ^(a+)+$) { return 200 yes; } return 200 no; }
    location / { return 200 short; }
""",
    [
        "GET /re" + "a" * 40 + "b",
        "GET /reaa",
        "GET /if?k=" + "a" * 40 + "b",
        "GET /if?k=aaa",
        "GET /lo" + "x" * 40 + "y",
        "GET /loxx",
    ],
    errors=True,
)
server(
    "allow and deny",
    r"""
    location /d { deny all; }
    location /a { allow 127.0.0.1; deny all; }
    location /n { deny 127.0.0.0/8; allow all; }
    location /o { allow 10.0.0.0/8; deny all; }
    location /six { allow ::1; deny all; }
    location /un { allow unix:; deny all; }
    location /only { deny 10.0.0.1; }
    location /zero { allow 0.0.0.0/0; deny all; }
    location /r { deny all; return 200 ok; }
    location /tf { deny all; try_files /hello.txt =404; }
    location /e { deny all; error_page 403 /hello.txt; }
    location /e2 { deny all; error_page 403 /d/x; }
    location /outer {
        deny all;
        location /outer/in { allow all; }
        location /outer/same { }
    }
    location /rw { rewrite ^ /d; } location /if { deny all; if ($arg_a) { set $x 1; } }
    location ~ /\.(?!well-known) { deny all; }
    location = /hello.txt { }
    location /dir/ { allow all; }
""",
    [
        f"GET {path}"
        for path in words("""
    /d /a /n /o /six /un /only /zero /r /tf /e /e2 /outer /outer/in /outer/same /rw /if?a=1
    /.git/x /.hidden /.well-known/x /dir/ /dir/none
""")
    ]
    + ["HEAD /d", "POST /d", "PUT /a"],
    errors=True,
)
AUTHS: dict[str, list[str | None]] = {
    "/b": [
        None,
        "",
        "Basic",
        "Basic ",
        "Basic !!",
        "Basic YTpw",
        "Basic OnB3",
        "Basic cGxhaW4=",
        "Basic cGxhaW46cHc=",
        "basic  cGxhaW46cHc=",
        "Bearer cGxhaW46cHc=",
        "Basic cGxhaW46cHg=",
        "Basic c2hhOnB3",
        "Basic c3NoYTpwdw==",
        "Basic ZGVzOnB3",
        "Basic bWQ1OnB3",
        "Basic YXByOnB3",
        "Basic czU6cHc=",
        "Basic czY6cHc=",
        "Basic YmM6cHc=",
        "Basic eWVzOnB3",
        "Basic eWVzOnB4",
        "Basic YmM6cHg=",
        "Basic YXByOng=",
        "Basic ZGVzOng=",
        "Basic bm9oYXNoOnB3",
        "Basic bm9oYXNoOg==",
        "Basic b2RkOnB3",
        "Basic I2NvbW1lbnQ6cHc=",
        "Basic dHdpY2U6cHc=",
        "Basic bGFzdDpwdw==",
    ],
    "/b?r=q": [None],
    "/off": [None],
    "/var?r=off": [None],
    "/var?r=x": [None],
    "/nofile": [None],
    "/norealm": [None],
    "/missing": [None, "Basic cGxhaW46cHc="],
    "/isdir": [None, "Basic cGxhaW46cHc="],
    "/vfile?f=users": [None, "Basic cGxhaW46cHc="],
    "/vfile?f=none": ["Basic cGxhaW46cHc="],
    "/any": [None],
    "/any2": [None, "Basic cGxhaW46cHc=", "Basic cGxhaW46cHg="],
    "/any3": [None],
    "/any4": [None, "Basic cGxhaW46cHc="],
    "/all": [None, "Basic cGxhaW46cHc="],
    "/all2": [None, "Basic cGxhaW46cHc="],
    "/page": [None, "Basic cGxhaW46cHc="],
    "/named": [None, "Basic eDp5"],
}
server(
    "passwords",
    r"""
    location /b {
        auth_basic "Staff $arg_r"; auth_basic_user_file users; root @DIR@/www;
        rewrite ^ /hello.txt break;
    }
    location /off { auth_basic off; auth_basic_user_file users; }
    location /var { auth_basic $arg_r; auth_basic_user_file users; return 200 never; }
    location /nofile { auth_basic x; }
    location /norealm { auth_basic_user_file users; }
    location /missing { auth_basic x; auth_basic_user_file none; }
    location /isdir { auth_basic x; auth_basic_user_file www; }
    location /vfile { auth_basic x; auth_basic_user_file @DIR@/$arg_f; }
    location /any {
        satisfy any; allow 127.0.0.1; deny all; auth_basic x; auth_basic_user_file users;
    }
    location /any2 { satisfy any; deny all; auth_basic x; auth_basic_user_file users; }
    location /any3 { satisfy any; deny all; auth_basic off; }
    location /any4 { satisfy any; auth_basic x; auth_basic_user_file users; }
    location /all {
        satisfy all; allow 127.0.0.1; deny all; auth_basic x; auth_basic_user_file users;
    }
    location /all2 { deny all; auth_basic x; auth_basic_user_file users; }
    location /page {
        auth_basic x; auth_basic_user_file users; error_page 401 /hello.txt;
    }
    location /named { auth_basic x; auth_basic_user_file users; error_page 401 = @n; }
    location @n { return 200 "n $remote_user"; }
""",
    [
        f"GET {path}" + (f" | Authorization: {auth}" if auth else "")
        for path, auths in AUTHS.items()
        for auth in auths
    ],
    errors=True,
)
http(
    "referers",
    r"""
        server {
            listen 127.0.0.1:@P0@; server_name localhost *.own.test www.*;
            valid_referers none blocked server_names *.b.com c.* d.com/x ~e\.;
            location / { if ($invalid_referer) { return 403; } return 200 ok; }
            location /strict {
                valid_referers a.com;
                if ($invalid_referer) { return 403; }
                return 200 ok;
            }
            location /blocked { valid_referers blocked a.com; return 200 "[$invalid_referer]"; }
        }
        server {
            listen 127.0.0.1:@P0@; server_name bare;
            location / { return 200 "[$invalid_referer]"; }
        }
    """,
    [
        "GET /",
        "GET /strict",
        "GET /blocked",
        "GET / | Host: bare | Referer: http://x/",
        *(
            f"GET {path} | Referer: {text}"
            for path in ("/", "/strict", "/blocked")
            for text in (
                "",
                "hidden",
                "http://x.b.com/",
                "HTTPS://c.q:80/",
                "http://d.com/xy",
                "http://d.com/y",
                "http://d.com",
                "http://localhost/",
                "ftp://a",
                "http://zz/e.",
                "http://zz/",
                "http://",
                "http://a.com",
                "https://A.com/x",
                "http://a.com.evil/",
                "http://x.own.test/",
                "http://own.test/",
                "http://www.q/",
                "http://" + "h" * 300 + "/",
            )
        ),
    ],
)

for text in (
    "if ($a) {}",
    "if () {}",
    "if ( ) {}",
    "if ($host) { if ($host) {} }",
    "if $host {}",
    "if ($host {}",
    "if ($host = a b) {}",
    "if ($host == a) {}",
    'if ($host ~ "(a") {}',
    'if ($host = "$foo") {}',
    "if ($host = $1) {}",
    "if ($host != ) {}",
    "if ($host ~) {}",
    "if (-f) {}",
    "if (-f $uri) {}",
    "if (!-g $uri) {}",
    "if (!f $uri) {}",
    "if (-f $uri $uri) {}",
    "if (host) {}",
    "if ($host$uri) {}",
    "if (${host}) {}",
    "if ($host = a) ;",
    "if ;",
    "if {}",
    "if ($) {}",
    'if ("$host" = a) {}',
    "if (($host)) {}",
    'if ($host = ")") {}',
    "if ($host !~* a) {}",
    "if ($host ~~ a) {}",
    "if (!$host) {}",
    "set $a;",
    "set a b;",
    "set $ b;",
    "set $1 b;",
    "set $a b c;",
    "set $host b;",
    "set $args b;",
    "set $http_foo b;",
    "set $http_host b;",
    "set $sent_http_location b;",
    "set $upstream_addr b;",
    "set $query_string b;",
    "set $invalid_referer b;",
    "set $a $b;",
    "set $a ${b;",
    "set $a $;",
    "rewrite a;",
    "rewrite a b c d;",
    "rewrite a b c;",
    'rewrite a "";',
    'rewrite a "?";',
    "rewrite (a /b;",
    "rewrite a $foo;",
    "rewrite ^(?<host>.) /a;",
    "rewrite ^(?<v>.) /a$v;",
    "break a;",
    "return;",
    "return 1000;",
    "rewrite_log on; rewrite_log on;",
    "rewrite_log 1;",
    "uninitialized_variable_warn off;",
    "if ($host) { deny all; }",
    "if ($host) { location /x {} }",
    "if ($host) { try_files a b; }",
    "if ($host) { root /a; root /b; }",
    "if ($host) { expires 1h; limit_rate 1k; sendfile on; gzip on; }",
    "if ($host) { index a; }",
    "if ($host) { alias /x; }",
    "if ($host) { internal; }",
    "if ($host) { satisfy any; }",
    "allow;",
    "allow a;",
    "allow all b;",
    "allow 1.2.3.4/8;",
    "allow 1.2.3.4/33;",
    "allow [::1];",
    "allow ::1/64;",
    "allow unix:/x;",
    "deny 1.2.3;",
    "deny ::ffff:1.2.3.4;",
    "satisfy none;",
    "satisfy any; satisfy all;",
    "auth_basic a b;",
    'auth_basic "$foo";',
    "auth_basic a; auth_basic b;",
    "auth_basic_user_file;",
    "auth_basic_user_file $foo;",
    "valid_referers;",
    "valid_referers a..b;",
    "valid_referers ~(;",
    "valid_referers ~;",
    'valid_referers "";',
    "valid_referers a.com a.com;",
    "valid_referers a.com a.com/x;",
    "valid_referers none;",
    "valid_referers none blocked;",
    "valid_referers none server_names;",
    "if ($host) { valid_referers none; }",
    "valid_referers none; valid_referers a.com;",
):
    location_mistake(text)
for text in (
    "if ($host) { root /a; }",
    "if ($host) { return 200; }",
    "if ($host) { if ($host) {} }",
    "if ($host) { rewrite_log on; break; set $a b; rewrite a b; }",
    "map $host $a {}",
    "valid_referers none;",
    "deny all; allow all;",
):
    server_mistake(text)
for text in (
    "set $a b;",
    "if ($a) {}",
    "rewrite a b;",
    "return 200;",
    "break;",
    "rewrite_log on;",
    "valid_referers none;",
    "map $host a {}",
    "map $host $ {}",
    "map $host {}",
    "map $host $a b {}",
    "map $host $a;",
    "map host $a {}",
    "map $foo $a {}",
    "map $host $host {}",
    "map $host $args {}",
    "map $host $a { a; }",
    "map $host $a { a b c; }",
    "map $host $a { a b; a c; }",
    "map $host $a { a b; A c; }",
    "map $host $a { default a; default b; }",
    "map $host $a { default; }",
    "map $host $a { hostnames; *.a.com b; .a.com c; }",
    "map $host $a { hostnames; a.com b; .a.com c; }",
    "map $host $a { hostnames; *.a.* c; }",
    "map $host $a { hostnames; a..b c; }",
    "map $host $a { hostnames; b* c; }",
    "map $host $a { *.a.com b; .a.com c; }",
    "map $host $a { ~(a b; }",
    "map $host $a { ~a(?<host>b) b; }",
    "map $host $a { ~*a b; ~ c; ~* d; }",
    "map $host $a { a $foo; }",
    "map $host $a { a ${foo; }",
    "map $host $a { a { } }",
    "map $host $a { include nothere; }",
    "map $host $a { include; }",
    "map $host $a { volatile; hostnames; default b; \\default c; }",
    "map $host $a { volatile x; }",
    "map $host $a { x y; } map $host $a { x z; }",
    "map_hash_max_size 1; map_hash_max_size 1;",
    "map_hash_max_size a;",
):
    http_mistake(text)
