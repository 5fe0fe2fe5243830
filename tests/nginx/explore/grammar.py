"""Owns: random configurations that nginx takes, or nearly."""

import re
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import TypeVar

from ..text import listed, words
from . import values as v
from .tree import Conf, Node, text_of

T = TypeVar("T")
EMPTY = '""'
# What sub_filter looks for, and what auth_basic calls itself.
SOUGHT = listed("hello; t; paragraph; h; IT WORKS; title; '<p>'; $arg_b; ll; aa")
AREAS = listed("""area; off; $arg_a; "a b"; 'q"q'""")


class Scope:
    """What a block's words may name: groups of its expression, how deep it is, what kind it is."""

    def __init__(
        self, kind: str, prefix: str = "", groups: Iterable[str] = (), exact: bool = False
    ) -> None:
        self.kind, self.prefix, self.groups, self.exact = kind, prefix, list(groups), exact


def plain(node: Node) -> Node:
    """A block without trailers in it."""
    inner = [plain(one) for one in node.block or [] if not one.words.startswith("add_trailer")]
    return Node(node.words, None if node.block is None else inner)


class Grammar:
    """Makes one configuration; `paths` then holds paths that lead somewhere in it."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.paths = [*v.FILES]
        self.names: list[str] = []
        self.variables: list[str] = []
        self.sets: list[str] = []
        # What stands in the http block.
        self.http: list[Node] = []
        self.count = 0
        # Each case leans to a few families, so that they meet one another.
        families = ["rewrite", "access", "errors", "headers", "filters", "proxy", "files", "mixed"]
        self.lean = set(rng.sample(families, rng.randint(1, 3)))

    def chance(self, p: float) -> bool:
        """Whether what is as likely as this happens."""
        return self.rng.random() < p

    def pick(self, items: Sequence[T]) -> T:
        """One of these."""
        return self.rng.choice(items)

    def one_of(self, text: str) -> str:
        """One of the parts of a text."""
        return self.pick(listed(text))

    def likes(self, family: str, p: float) -> bool:
        """The same for directives of a family, of which some are more likely in each case."""
        return self.chance(p * 2 if family in self.lean else p / 3)

    def fresh(self) -> int:
        """A number that was not used."""
        self.count += 1
        return self.count

    def conf(self) -> Conf:
        """A whole configuration."""
        for _ in range(self.rng.choice([0, 0, 1, 1, 2, 3])):
            self.computed()
        self.http.append(self.log_format())
        servers = [self.server(at) for at in range(self.rng.choice([1, 1, 1, 2, 3]))]
        # Answers in other answers: trailers are written when all of them have left.
        if any(word in text_of(servers) for word in ("_before_body", "_after_body", "ssi on")):
            servers = [plain(server) for server in servers]
        return Conf([*self.http, *servers])

    # Words.

    def quoted(self, text: str) -> str:
        """A text in quotes if it needs them."""
        if text and not any(c in text for c in " ;{}\"'\\\t#"):
            return text
        quote = "'" if "'" not in text else '"'
        return quote + text.replace("\\", "\\\\").replace(quote, "\\" + quote) + quote

    def variable(self, scope: Scope, late: bool = False) -> str:
        """A variable; a late one may be known only when an answer is there."""
        if late and self.chance(0.5):
            name = self.pick(v.LATE_VARIABLES)
            name = "bbw@N@" if name == "body_if_whole" else name
        elif self.variables and self.chance(0.25):
            name = self.pick(self.variables)
        elif self.sets and self.chance(0.3):
            name = self.pick(self.sets)
        elif scope.groups and self.chance(0.5):
            name = self.pick(scope.groups)
        elif self.chance(0.08):
            name = self.pick("123")
        else:
            name = self.pick(v.PLAIN_VARIABLES)
        return f"${{{name}}}" if self.chance(0.15) else "$" + name

    def may_be_port(self, variable: str) -> bool:
        """Whether a variable may be the port of a server, or a text that begins with it."""
        name = variable.strip("${}")
        return "port" in name or name in self.variables or name in self.sets

    def value(self, scope: Scope, late: bool = False, lead: str = "") -> str:
        """A text with variables in it, quoted if it must be."""
        parts: list[str] = []
        for _ in range(self.rng.choice([1, 1, 1, 2, 3])):
            bit = self.variable(scope, late) if self.chance(0.6) else self.pick(v.BITS)
            if parts and parts[-1][:1] == "$" and bit[:1].isalnum():
                bit = "-" + bit
            # The servers' own ports can be told from other numbers only where they stand apart.
            if parts and bit[:1] == "$" and self.may_be_port(bit):
                bit = "-" + bit
            parts.append(bit)
        text = lead + "".join(parts)
        # A map that matches changes the groups while the text is written: nginx answers 500.
        if re.search(r"\$\{?m\d", text):
            text = re.sub(r"\$\{?([123]|seg|rest|first|who|cond|rw)\b\}?", "g", text)
        return self.quoted(text)

    def path(self) -> str:
        """A path that leads somewhere, or not."""
        if self.chance(0.5):
            return self.pick([p for p in self.paths if "%" not in p and " " not in p])
        if self.names and self.chance(0.1):
            return self.pick(self.names)
        return self.pick(["/a", "/b/", "/dir/", "/l/m", "/p/q", "/x/y/z", "/none", "/deep/er/"])

    # Variables of the http block.

    def computed(self) -> None:
        """Adds a variable that is computed from others."""
        name, source = f"m{self.fresh()}_@N@", self.variable(Scope("http"))
        kind = self.pick(["map", "map", "map", "geo", "split"])
        if kind == "map":
            rows: list[Node] = []
            for _ in range(self.rng.randint(0, 4)):
                key = self.pick(
                    words(r"""
                        a b /a /dir/ GET 1 *.test .b.test www.* ~^/(?<mp>[a-z]+) ~(\d+) ~*^/A(.*)$
                        \default "" ~a|b on localhost POST ~^(.)(.)(.*)$
                    """)
                )
                if not any(row.words.split(" ")[0] == key for row in rows):
                    rows.append(Node(f"{key} {self.value(Scope('http', groups='12'))}"))
            if self.chance(0.6):
                rows.append(Node(f"default {self.value(Scope('http'))}"))
            if self.chance(0.25):
                rows.insert(0, Node("hostnames"))
            if self.chance(0.2):
                rows.insert(0, Node("volatile"))
            self.http.append(
                Node(
                    f"map {source if self.chance(0.8) else self.value(Scope('http'))} ${name}", rows
                )
            )
        elif kind == "geo":
            rows = [Node("127.0.0.0/8 local"), Node("127.1.0.0/16 near")][: self.rng.randint(0, 2)]
            rows += [Node("default away")] if self.chance(0.6) else []
            rows += (
                [
                    Node(
                        self.pick(
                            ["10.0.0.0/8 ten", "::1/128 six", "0.0.0.0/0 all", "192.168.1.1 one"]
                        )
                    )
                ]
                if self.chance(0.5)
                else []
            )
            if self.chance(0.3):
                rows += [Node("proxy 127.0.0.0/8")] + (
                    [Node("proxy_recursive")] if self.chance(0.5) else []
                )
            own = self.pick(["$remote_addr ", "", "$arg_a ", "$http_x "])
            self.http.append(Node(f"geo {own}${name}", rows))
        else:
            rows = [
                Node(
                    f"{self.pick(['10%', '33.3%', '0.01%', '50%'])} "
                    f"{self.pick(['one', 'two', EMPTY])}"
                )
                for _ in range(self.rng.randint(0, 2))
            ]
            if self.chance(0.7):
                rows.append(Node("* rest"))
            self.http.append(
                Node(f"split_clients {self.value(Scope('http'))} ${name}", rows or [Node("* all")])
            )
        self.variables.append(name)

    def log_format(self) -> Node:
        """The format of the access log, with variables of all kinds."""
        escape = self.pick(["", "", "", "escape=json ", "escape=none ", "escape=default "])
        names = self.rng.sample(v.PLAIN_VARIABLES + v.LATE_VARIABLES, 6)
        # What is in $request_body while not all of it is waited for is a matter of timing.
        self.streams = "request_body" not in names
        names = ["bbw@N@" if name == "body_if_whole" else name for name in names] + self.variables
        self.http.append(
            Node(
                "map $status$sent_http_transfer_encoding $bbw@N@",
                [Node(r"~^20\d$ $body_bytes_sent"), Node("default -")],
            )
        )
        return Node(
            f"log_format l@N@ {escape}'$request_uri|$status|"
            + "|".join("$" + n for n in names)
            + "'"
        )

    # Blocks.

    def server(self, at: int) -> Node:
        """A server."""
        rng = self.rng
        listen = "listen @A@:@P0@" + (
            " default_server"
            if at
            and self.chance(0.2)
            and not any("default_server" in n.words for s in self.http for n in s.block or [])
            else ""
        )
        nodes = [Node(listen)]
        if self.chance(0.85):
            nodes.append(
                Node("server_name " + " ".join(rng.sample(v.NAMES, rng.choice([1, 1, 2, 3]))))
            )
        nodes += [
            Node("root @DIR@/www"),
            Node("access_log @LOGS@/case-@N@.log l@N@"),
            Node(
                f"error_log @LOGS@/errors-@N@.log {self.pick(['info', 'error', 'error', 'notice'])}"
            ),
        ]
        scope = Scope("server")
        for text in (
            "merge_slashes off",
            "underscores_in_headers on",
            "ignore_invalid_headers off",
            "client_max_body_size 8",
            "absolute_redirect off",
            "server_name_in_redirect on",
            "port_in_redirect off",
            "large_client_header_buffers 2 1k",
            "server_tokens on",
            "log_subrequest on",
            "rewrite_log on",
            "client_body_buffer_size 8",
            "client_body_in_single_buffer on",
            "uninitialized_variable_warn off",
            "reset_timedout_connection on",
            "client_body_in_file_only clean",
            "output_buffers 1 512",
            "sendfile on",
            "open_file_cache max=10",
            "max_ranges 1",
            "lingering_close off",
            "postpone_output 0",
        ):
            if self.chance(0.04):
                nodes.append(Node(text))
        nodes += self.simple(scope, 0.35)
        if self.likes("rewrite", 0.3):
            nodes += self.rewriting(scope, 2)
        for _ in range(rng.randint(2, 7)):
            nodes.append(self.location(scope, 0))
        return Node("server", self.no_twins(nodes))

    @staticmethod
    def no_twins(nodes: Sequence[Node]) -> list[Node]:
        """Two of what may stand once would only be refused."""
        seen, kept = set(), []
        many = {
            "add_header",
            "error_page",
            "if",
            "set",
            "rewrite",
            "return",
            "break",
            "allow",
            "deny",
            "proxy_set_header",
            "sub_filter",
            "server",
            "proxy_cookie_path",
            "proxy_cookie_domain",
            "proxy_cookie_flags",
            "proxy_redirect",
            "proxy_hide_header",
            "proxy_pass_header",
            "add_trailer",
            "auth_request_set",
            "access_log",
            "map",
            "geo",
            "split_clients",
            "log_format",
            "limit_except",
            "index",
        }
        for node in nodes:
            name = node.words.split(" ")[0]
            key = node.words if name == "location" else name
            if name in many or key not in seen:
                kept.append(node)
            seen.add(key)
        # HTTP origins: how long a request is, nobody but the server says.
        if any("proxy_set_header Content-Length" in node.words for node in kept):
            kept = [node for node in kept if not node.words.startswith("proxy_set_body")]
        return kept

    def location(self, outer: Scope, depth: int) -> Node:
        """A location, maybe with others in it."""
        kind = self.pick(
            ["prefix", "prefix", "prefix", "exact", "first", "regex", "regex", "anycase", "named"]
        )
        if kind == "named" and (depth or outer.kind != "server"):
            kind = "prefix"
        if outer.kind == "regex":
            kind = self.pick(["regex", "anycase"])
        if kind == "named":
            name = f"@n{self.fresh()}"
            self.names.append(name)
            words, scope = name, Scope("named")
        elif kind in ("regex", "anycase"):
            pattern, paths = self.pick(v.REGEXES)
            self.paths += paths
            groups = [
                g
                for g, mark in (("seg", "?<seg>"), ("rest", "?<rest>"), ("first", "?<first>"))
                if mark in pattern
            ] + ["1", "2"][: pattern.count("(")]
            words, scope = (
                f"{'~' if kind == 'regex' else '~*'} {self.quoted_regex(pattern)}",
                Scope("regex", groups=groups),
            )
        else:
            inside = outer.prefix
            prefix = (
                inside + self.pick(["", "x", "/y", "b", "c/", "dir/"])
                if inside and inside != "/"
                else self.pick(v.PREFIXES)
            )
            sign = {"prefix": "", "exact": "= ", "first": "^~ "}[kind]
            words, scope = (
                sign + self.quoted(prefix),
                Scope("prefix", prefix, exact=kind == "exact"),
            )
            path = prefix.replace(" ", "%20").replace("%61", "%2561")
            self.paths += [
                path,
                path,
                path + "hello.txt",
                path + "/c.txt",
                path.rstrip("/") or "/",
                path + "q/r?a=1",
            ]
        nodes = self.body(scope)
        if depth < 2 and kind not in ("named", "exact") and self.chance(0.25):
            nodes += [self.location(scope, depth + 1) for _ in range(self.rng.choice([1, 1, 2]))]
        return Node("location " + words, self.no_twins(nodes))

    @staticmethod
    def quoted_regex(pattern: str) -> str:
        """An expression in quotes if it needs them."""
        return f'"{pattern}"' if any(c in pattern for c in '{};" ') else pattern

    def body(self, scope: Scope) -> list[Node]:
        """What stands in a location."""
        nodes = self.simple(scope, 0.8)
        if self.likes("rewrite", 0.4):
            nodes += self.rewriting(scope, 3)
        nodes += self.content(scope)
        self.rng.shuffle(nodes)
        return nodes

    # Rewriting.

    def rewriting(self, scope: Scope, most: int) -> list[Node]:
        """Some steps of rewriting."""
        return [self.rewrite_step(scope) for _ in range(self.rng.randint(1, most))]

    def rewrite_step(self, scope: Scope, inside: bool = False) -> Node:
        """A step of rewriting, maybe inside of an `if`."""
        kind = self.pick(
            ["set", "set", "rewrite", "rewrite", "if", "return", "break"]
            if not inside
            else ["set", "set", "rewrite", "return", "break"]
        )
        if (
            scope.kind == "server"
            and kind in ("return", "break")
            and not inside
            and self.chance(0.8)
        ):
            kind = "if"
        if kind == "set":
            own = self.pick(["s1", "s2", "s3", "s4"]) + "_@N@"
            name = self.pick([own, own, own, "args", "limit_rate"] if self.chance(0.2) else [own])
            value = self.value(scope) if name != "limit_rate" else self.pick(["100k", "0", "x"])
            if name == own and own not in self.sets:
                self.sets.append(own)
            return Node(f"set ${name} {value}")
        if kind == "rewrite":
            return self.rewrite(scope)
        if kind == "return":
            return self.returning(scope)
        if kind == "break":
            return Node("break")
        inner = Scope("if", scope.prefix, scope.groups + ["1"])
        inner.kind = "server if" if scope.kind == "server" else "if"
        nodes = [self.rewrite_step(inner, True) for _ in range(self.rng.choice([0, 1, 1, 2]))]
        if inner.kind == "if":
            nodes += self.simple(inner, 0.3)
            if self.chance(0.15):
                nodes.append(self.proxy_pass(inner))
        return Node(f"if ({self.condition(scope)})", self.no_twins(nodes))

    def condition(self, scope: Scope) -> str:
        """What an `if` asks."""
        what = self.variable(scope).replace("{", "").replace("}", "")
        what = "$uri" if what[1:].isdigit() else what
        kind = self.pick(["var", "eq", "ne", "match", "nomatch", "file", "method"])
        if kind == "var":
            return what
        if kind in ("eq", "ne"):
            value = self.one_of('a; 1; 0; GET; ""; /a; $arg_a; $uri; POST; "a b"')
            return f"{what} {'=' if kind == 'eq' else '!='} {value}"
        if kind in ("match", "nomatch"):
            pattern = self.pick(
                listed(r"""
                    ^/([a-z]+); a; ^$; ^(.)(.*); \.txt$; (\d+); (?<cond>.+); ^(GET|HEAD)$; A; "{";
                    "a b"
                """)
            )
            return f"{what} {'!' if kind == 'nomatch' else ''}~{self.pick(['', '*'])} {pattern}"
        if kind == "file":
            test = f"{self.pick(['', '!'])}-{self.pick('fdex')}"
            path = self.one_of("""
                $request_filename; @DIR@/www/hello.txt; @DIR@/www/dir; @DIR@/www$uri;
                $document_root/none; @DIR@/www/linkdir
            """)
            return f"{test} {path}"
        return (
            f"$request_method {self.pick(['=', '!='])} {self.pick(['POST', 'HEAD', 'GET', 'PUT'])}"
        )

    def rewrite(self, scope: Scope) -> Node:
        """A rewrite."""
        pattern, groups = self.pick(
            [
                ("^", 0),
                ("^/(.*)$", 1),
                (r"^/([a-z]+)/(.*)$", 2),
                ("^/a(.*)", 1),
                (r"\.txt$", 0),
                ("(.*)", 1),
                (r"^/(\w)(\w*)", 2),
                ("^/dir", 0),
                ("b", 0),
                (r"^/(?<rw>[^/]*)", 1),
                ("/(l)/(m)?", 2),
                ("x(y)?z?", 1),
            ]
        )
        inner = Scope("rewrite", groups=["1", "2"][:groups] * 2 + scope.groups)
        target = self.pick(
            [
                self.path(),
                self.path(),
                "/r/$1",
                "/$1",
                "/$2/$1",
                "$1",
                "/r?x=$1",
                "/r?x=$1&y=$args?",
                "/r?",
                "/dir/file.txt",
                "http://r.test/$1",
                "https://r.test/$1?z",
                "$scheme://$host/$1",
                "/r/$uri",
                "/hello.txt?$query_string",
                self.value(inner, lead="/r"),
                self.value(inner, lead="/r?k="),
                self.value(inner),
            ]
        )
        flag = self.pick(["", "", " last", " last", " break", " break", " redirect", " permanent"])
        return Node(
            f"rewrite {self.quoted_regex(pattern)} "
            f"{self.quoted(target) if target[0] not in chr(34) + chr(39) else target}{flag}"
        )

    def returning(self, scope: Scope) -> Node:
        """A return of some form."""
        kind = self.pick(["code", "text", "text", "text", "url", "bare", "path"])
        status = self.pick(v.STATUSES if self.chance(0.5) else [200, 302, 404, 403, 301])
        if kind == "code":
            return Node(f"return {status}")
        if kind == "text":
            return Node(f"return {status if status != 444 else 200} {self.value(scope)}")
        if kind == "url":
            status = self.pick([301, 302, 303, 307, 308, 200])
            lead = self.one_of("http://r.test/; /; https://$host/; $scheme://; ")
            return Node(f"return {status} {self.value(scope, lead=lead)}")
        if kind == "path":
            return Node(f"return {self.pick([301, 302])} {self.path().replace('@', '/')}")
        target = self.one_of("""
            http://r.test/x; https://r.test$request_uri; $scheme://$host$uri; http://r.test/$arg_a
        """)
        return Node(f"return {target}")

    # What answers.

    def content(self, scope: Scope) -> list[Node]:
        """What makes the answer of a location."""
        kinds = ["static"] * 3 + ["return"] * 3 + ["alias", "try", "root"]
        kinds += ["proxy"] * (5 if "proxy" in self.lean else 1)
        kinds += ["gif"] if self.chance(0.2) else []
        kind = self.pick(kinds)
        if kind == "return":
            return [self.returning(scope)]
        if kind == "alias" and scope.kind in ("prefix", "regex"):
            end = "/" if scope.prefix.endswith("/") or not scope.prefix else ""
            if scope.kind == "regex":
                return [
                    Node(
                        "alias @DIR@/www/"
                        f"{self.pick(['$1', '$2', 'dir/$1', 'hello.txt', 'dir/', '$uri'])}"
                    )
                ]
            place = self.one_of("dir; other; list; noindex; a/b; none; hello.txt; $arg_a")
            nodes = [Node(f"alias @DIR@/www/{place}{end}")]
            return nodes + (self.trying() if self.chance(0.2) else [])
        if kind == "try":
            return self.trying()
        if kind == "root":
            return [
                Node(
                    "root @DIR@/"
                    f"{self.pick(['www/dir', 'www/a', 'none', 'www/$arg_a', 'www/other', 'www'])}"
                )
            ]
        if kind == "proxy":
            return [self.proxy_pass(scope), *self.proxy_options(scope)]
        if kind == "gif":
            return [Node("empty_gif")]
        return []

    def trying(self) -> list[Node]:
        """A try_files."""
        tried = self.rng.sample(
            words("""
                $uri $uri/ /hello.txt $uri.html /none $uri/index.html /dir$uri @DIR@/x $arg_a
                /dir/ $uri.txt ""
            """),
            self.rng.randint(1, 3),
        )
        last = self.pick(
            [
                "=404",
                "=403",
                "=500",
                "=444",
                "/index.html",
                "/fallback.html?x=$uri",
                self.path(),
                "@missing",
                "/none",
                "/$arg_a",
                "=301",
            ]
            + self.names * 3
        )
        return [Node(f"try_files {' '.join(tried)} {last}")]

    def proxy_pass(self, scope: Scope) -> Node:
        """A proxy_pass to the origin or a group."""
        plain = scope.kind == "prefix"
        target = self.pick(
            ["", "", "$request_uri", "/v$uri", "/v$uri$is_args$args", "/v?$args"]
            + (["/", "/", "/x/", "/x", "/x?y", "/%20/"] * 2 if plain else [])
        )
        host = self.pick(["@ORIGIN@", "@ORIGIN@", "@ORIGIN@", "up@N@"])
        if host == "up@N@" and not any(node.words == "upstream up@N@" for node in self.http):
            self.http.append(
                Node(
                    "upstream up@N@",
                    [Node("server @ORIGIN@")] + ([Node("keepalive 2")] if self.chance(0.3) else []),
                )
            )
        return Node(f"proxy_pass http://{host}{target}")

    def proxy_options(self, scope: Scope) -> list[Node]:
        """Directives about what is passed on, and what comes back."""
        nodes = []
        rows: list[Callable[[], str]] = [
            lambda: (
                "proxy_set_header "
                f"{self.one_of('X-F; Host; X-Y; Cookie; User-Agent; Accept-Encoding; Range')}"
                f" {self.value(scope)}"
            ),
            lambda: (
                f"proxy_set_header {self.pick(['Host', 'X', 'Cookie', 'Connection'])} "
                f"{self.pick([chr(34) * 2, '$host', '$http_host', 'h.test'])}"
            ),
            lambda: (
                "proxy_redirect "
                + self.pick(
                    listed("""
                        off; default; http://o.test/ /o/; http://@ORIGIN@/ http://$host/;
                        ~^http://([^/]+)/(.*)$ http://n.test/$1/$2; ~*/a(.*) $1; / /pre/;
                        http:// https://
                    """)
                )
            ),
            lambda: (
                "proxy_cookie_path " + self.pick(["off", "/ /c/", r"~^/(.*)$ /d/$1", "/a $uri"])
            ),
            lambda: (
                "proxy_cookie_domain "
                + self.pick(["off", "o.test n.test", "~^(.*)$ x.$1", "o.test $host"])
            ),
            lambda: (
                "proxy_cookie_flags "
                + self.pick(
                    [
                        "off",
                        "~ secure httponly",
                        "s nosecure samesite=lax",
                        "s samesite=strict",
                        "~ $arg_a",
                    ]
                )
            ),
            lambda: "proxy_intercept_errors on",
            lambda: "proxy_intercept_errors on",
            lambda: f"proxy_method {self.pick(['GET', 'POST', '$request_method'])}",
            lambda: f"proxy_http_version {self.pick(['1.0', '1.1'])}",
            lambda: "proxy_pass_request_headers off",
            lambda: "proxy_pass_request_body off; proxy_set_header Content-Length ''",
            lambda: "proxy_hide_header X-R",
            lambda: f"proxy_pass_header {self.pick(['Server', 'Date', 'X-Accel-Redirect'])}",
            lambda: "proxy_ignore_headers X-Accel-Redirect",
            lambda: "proxy_buffering off",
            lambda: "proxy_request_buffering off",
            lambda: f"proxy_set_body {self.value(scope)}",
            lambda: "proxy_force_ranges on",
            lambda: "proxy_pass_trailers on",
            lambda: "proxy_buffer_size 1k",
            lambda: (
                "proxy_ignore_headers X-Accel-Expires Cache-Control Set-Cookie "
                "X-Accel-Charset X-Accel-Buffering X-Accel-Limit-Rate"
            ),
        ]
        for _ in range(self.rng.choice([0, 1, 1, 2, 3])):
            nodes.append(Node(self.pick(rows)()))
        return [
            node for node in nodes if self.streams or node.words != "proxy_request_buffering off"
        ]

    # Directives that stand anywhere.

    def simple(self, scope: Scope, weight: float) -> list[Node]:
        """Directives that stand anywhere, more of them with more weight."""
        nodes: list[Node] = []
        rows: list[tuple[str, float, Callable[[Scope], list[Node]]]] = [
            ("errors", 0.5, self.error_page),
            ("headers", 0.5, self.header),
            ("files", 0.3, self.file_option),
            ("filters", 0.35, self.filter_option),
        ]
        if scope.kind != "if":
            rows += [
                ("access", 0.25, self.access),
                ("errors", 0.2, lambda _: [Node("recursive_error_pages on")]),
                ("mixed", 0.15, self.odds),
            ]
            rows += [("proxy", 0.1, self.proxy_options)]
        if scope.kind in ("prefix", "regex") and self.likes("access", 0.1):
            nodes.append(self.limit_except())
        if scope.kind in ("prefix", "regex", "named") and self.chance(0.05):
            nodes.append(Node("internal"))
        for family, p, make in rows:
            while self.likes(family, p * weight):
                nodes += make(scope)
                if self.chance(0.5):
                    break
        return self.no_twins(nodes)

    def error_page(self, scope: Scope) -> list[Node]:
        """An error_page."""
        codes = " ".join(
            str(c)
            for c in self.rng.sample(
                v.ERRORS if self.chance(0.4) else [404, 403, 401, 405, 500, 502, 302, 400],
                self.rng.choice([1, 1, 2, 3]),
            )
        )
        answer = self.pick(["", "", "", "= ", "=200 ", "=404 ", "=302 ", "=204 ", "=444 ", "=503 "])
        target = self.pick(
            [
                "/errors/404.html",
                "/errors/50x.html",
                "/errors/denied.txt",
                self.path(),
                self.path(),
                "/none",
                "http://e.test/x",
                "http://e.test/$uri?$args",
                "/errors/$status.html?",
                "$arg_a",
                "/e?$args",
                "/dir/",
                "@missing",
                "e.html",
            ]
            + self.names * 4
        )
        return [Node(f"error_page {codes} {answer}{target}")]

    def header(self, scope: Scope) -> list[Node]:
        """What is added to answers."""
        kind = self.pick(["add", "add", "add", "expires", "trailer", "inherit"])
        if kind == "add":
            name = self.pick(
                words("""
                X-A X-B Cache-Control Link Last-Modified ETag X-Late
                Content-Language Set-Cookie Vary Location
            """)
            )
            return [
                Node(
                    f"add_header {name} {self.value(scope, late=True)}{self.pick(['', ' always'])}"
                )
            ]
        if kind == "expires":
            return [
                Node(
                    "expires "
                    + self.pick(
                        listed("""
                            1h; -1; epoch; max; off; modified 1d; modified -1d; @15h30m; 0;
                            $arg_e; 10y; -10m
                        """)
                    )
                )
            ]
        if kind == "trailer":
            return [
                Node(f"add_trailer X-T {self.value(scope, late=True)}{self.pick(['', ' always'])}")
            ]
        return [Node("add_header_inherit " + self.pick(["on", "off", "merge"]))]

    def file_option(self, scope: Scope) -> list[Node]:
        """How files are found and sent."""
        return (
            [
                Node(
                    self.pick(
                        listed("""
                            index index.html; index file.txt index.html; index none.html c.txt;
                            index /hello.txt; index $arg_a index.html; autoindex on; autoindex on;
                            autoindex_format json; autoindex_format xml; autoindex_exact_size off;
                            default_type text/html; default_type text/plain; default_type '';
                            types { }; etag off; if_modified_since before; if_modified_since off;
                            max_ranges 0; max_ranges 2; log_not_found off; directio 1;
                            sendfile on; disable_symlinks on; open_file_cache max=5; read_ahead 0;
                            limit_rate_after 1m; client_max_body_size 4; satisfy any;
                            absolute_redirect off; server_tokens on
                        """)
                    )
                )
            ]
            if self.chance(0.9)
            else [Node("types", [Node("text/x-own txt"), Node("text/html html HTM")])]
        )

    def filter_option(self, scope: Scope) -> list[Node]:
        """What changes bodies."""
        kind = self.pick(["gzip", "gunzip", "charset", "sub", "addition", "ssi"])
        if kind == "gzip":
            return [
                Node("gzip on"),
                *[
                    Node(t)
                    for t in self.rng.sample(
                        listed("""
                            gzip_types text/plain text/css; gzip_types *; gzip_min_length 1;
                            gzip_vary on; gzip_http_version 1.0; gzip_proxied any;
                            gzip_proxied expired no-cache auth; gzip_static on;
                            gzip_static always; gzip_comp_level 9; gzip_disable Bot
                        """),
                        self.rng.randint(0, 3),
                    )
                ],
            ]
        if kind == "gunzip":
            return [Node("gunzip on")] + ([Node("gzip_static always")] if self.chance(0.7) else [])
        if kind == "charset":
            return [
                Node(
                    self.pick(
                        listed("""
                            charset utf-8; charset koi8-r; charset off; charset_types text/plain;
                            charset_types *; override_charset on; source_charset utf-8
                        """)
                    )
                )
            ]
        if kind == "sub":
            nodes = [Node(f"sub_filter {self.pick(SOUGHT)} {self.value(scope)}")]
            return nodes + [
                Node(t)
                for t in self.rng.sample(
                    [
                        "sub_filter_once off",
                        "sub_filter_types *",
                        "sub_filter_types text/plain",
                        "sub_filter_last_modified on",
                    ],
                    self.rng.randint(0, 2),
                )
            ]
        if kind == "addition":
            # Only files, for a part that includes itself has no end.
            page = self.pick(
                ["/hello.txt", "/empty.txt", "/none", "/dir/file.txt", '""', "/add/x?a=$uri"]
            )
            return [Node(f"{self.pick(['add_before_body', 'add_after_body'])} {page}")] + (
                [Node("addition_types *")] if self.chance(0.5) else []
            )
        return [
            Node("ssi on"),
            *[
                Node(t)
                for t in self.rng.sample(
                    [
                        "ssi_types *",
                        "ssi_last_modified on",
                        "ssi_silent_errors on",
                        "ssi_types text/plain",
                    ],
                    self.rng.randint(0, 1),
                )
            ],
        ]

    def access(self, scope: Scope) -> list[Node]:
        """Who may ask."""
        kind = self.pick(["list", "list", "basic", "request", "satisfy", "referers"])
        if kind == "list":
            return [
                Node(
                    self.pick(
                        listed("""
                            allow 127.0.0.1; deny all; allow all; deny 127.0.0.0/8;
                            deny 127.0.0.1; allow 127.0.0.0/8; deny ::1; allow unix:;
                            deny 10.0.0.0/8
                        """)
                    )
                )
                for _ in range(self.rng.choice([1, 1, 2, 3]))
            ]
        if kind == "basic":
            return [
                Node(f"auth_basic {self.pick(AREAS)}"),
                Node(
                    "auth_basic_user_file "
                    f"{self.pick(['@DIR@/users', '@DIR@/users', '@DIR@/none', '@DIR@/$arg_a'])}"
                ),
            ]
        if kind == "request":
            asked = self.pick(
                ["/asked/", "/none", "/hello.txt", "off", self.path().replace("@", "/")]
            )
            more = (
                [Node(f"auth_request_set $s1_@N@ {self.value(scope, late=True)}")]
                if self.chance(0.3)
                else []
            )
            if more and "s1_@N@" not in self.sets:
                self.sets.append("s1_@N@")
            return [Node(f"auth_request {asked}"), *more]
        if kind == "referers":
            return [Node("valid_referers none blocked *.test ~x")]
        return [Node(f"satisfy {self.pick(['any', 'all'])}")]

    def odds(self, scope: Scope) -> list[Node]:
        """What belongs to no family."""
        texts = listed("""
            log_subrequest on; log_not_found off; uninitialized_variable_warn off; rewrite_log on;
            server_name_in_redirect on; port_in_redirect off; absolute_redirect off;
            client_max_body_size 5; server_tokens on; client_body_in_single_buffer on;
            client_body_buffer_size 4; subrequest_output_buffer_size 1k; msie_padding off;
            etag off; limit_rate 10m; send_timeout 5s; tcp_nodelay off; types_hash_max_size 512
        """)
        return [Node(self.pick(texts))]

    def limit_except(self) -> Node:
        """Rules for other methods."""
        rules = [
            Node(
                self.pick(
                    [
                        "deny all",
                        "allow 127.0.0.1",
                        "deny 127.0.0.1",
                        "auth_basic in",
                        "auth_basic_user_file @DIR@/users",
                    ]
                )
            )
            for _ in range(self.rng.choice([1, 1, 2]))
        ]
        return Node(
            f"limit_except {self.pick(['GET', 'POST', 'GET POST', 'PUT', 'HEAD', 'OPTIONS'])}",
            self.no_twins(rules),
        )
