"""Trees whose rules look ahead to what other requests would come to, or ask about the connection.

A site is its name, its files by path, and requests, as in sites.py.
"""

FILES = {"index.html": "index\n", "a.txt": "a\n", "b.txt": "b\n", "d/c.txt": "c\n", "d/index.html": "d index\n",
         "closed/.htaccess": "Require all denied\n", "closed/x.txt": "x\n",
         "users/.htaccess": "AuthType Basic\nAuthName U\nAuthUserFile @ROOT@/.htpasswd\nRequire valid-user\n",
         "users/u.txt": "u\n", "gone/.htaccess": "RewriteEngine on\nRewriteRule ^g - [G]\nRewriteRule ^r$ /a.txt [R]\n",
         "gone/r": "r\n", "gone/g": "g\n", "moved/.htaccess": "RewriteEngine on\nRewriteRule ^in$ /b.txt\n", "moved/in": "i\n",
         ".htpasswd": "bob:{SHA}GpHWL3ymc5liWkNopqtdSjuqYHM=\neve:{SHA}GpHWL3ymc5liWkNopqtdSjuqYHM=\n"}
BOB = {"Authorization": "Basic Ym9iOnB3"}
EVE = {"Authorization": "Basic ZXZlOnB3"}
ON = "RewriteEngine on\n"
PATHS = ["/a.txt", "/d/c.txt", "/d/", "/d", "/", "/none", "/none/more", "/closed/x.txt", "/users/u.txt", "/gone/g",
         "/gone/r", "/moved/in", "/.htaccess"]
# Tests ask about a path of the query, so that no rule meets itself.
ASK = ["/ask?" + path for path in PATHS] + ["/ask?a.txt", "/ask?d/c.txt", "/ask?../x", "/ask?/%61.txt", "/ask?",
                                            "/ask?/a.txt/more"]


def site(name, text, requests, more=None):
    return f"ahead-{name}", {".htaccess": text, **FILES, **(more or {})}, requests


def of_user(name, rule):
    """A rule about the user, asked by nobody and by two."""
    text = "AuthType Basic\nAuthName U\nAuthUserFile @ROOT@/.htpasswd\n" + rule
    return site(f"user-{name}", text, ["/a.txt", ("GET", "/a.txt", BOB), ("GET", "/a.txt", EVE)])


def asks(test, subject="%{QUERY_STRING}", rest=""):
    return ON + f"RewriteCond {subject} {test}\nRewriteRule ^ask$ /a.txt? [L]\n" + rest


def shows(variable, base="RewriteBase /\n"):
    """What a look ahead comes to, in a field of the answer."""
    return (ON + base + f"RewriteRule ^(?!moved|gone) - [E=SEEN:%{{{variable}}},NS]\n"
            "Header set X-Seen \"%{SEEN}e\" env=SEEN\nHeader set X-Re \"%{REDIRECT_SEEN}e\" env=REDIRECT_SEEN\n")


AHEAD = [
    site("url", asks("-U"), ASK),
    site("not-url", asks("!-U"), ASK),
    site("url-with-base", asks("-U").replace("on\n", "on\nRewriteBase /\n", 1), ASK),
    site("file", asks("-F", "%{DOCUMENT_ROOT}%{QUERY_STRING}"), ASK),
    site("not-file", asks("!-F", "%{DOCUMENT_ROOT}%{QUERY_STRING}"), ASK),
    site("file-beside", asks("-F"), ["/ask?a.txt", "/ask?none", "/ask?d", "/ask?d/c.txt", "/ask?closed/x.txt"]),
    site("url-by-user", asks("-U"), [("GET", "/ask?/users/u.txt", {}), ("GET", "/ask?/closed/x.txt", BOB)]),
    site("front", ON + "RewriteCond %{REQUEST_FILENAME} !-F\nRewriteRule ^(.*)$ index.html [L]\n", PATHS),
    site("front-once", ON + "RewriteCond %{REQUEST_FILENAME} !-F\nRewriteRule ^(.*)$ index.html [L,NS]\n", PATHS),
    site("front-url", ON + "RewriteCond %{REQUEST_URI} !-U\nRewriteRule ^(.*)$ index.html [L,NS]\n", PATHS),
    site("or", ON + "RewriteCond %{QUERY_STRING} -U [OR]\nRewriteCond %{QUERY_STRING} ^x\nRewriteRule ^ask$ /b.txt? [L]\n",
         [*ASK, "/ask?x"]),
    site("sections", "<Files ask>\n" + asks("-U") + "</Files>\n", ["/ask?/a.txt", "/a.txt"]),
    *(site(f"{kind.lower()}-{name.lower()}-{with_base}", shows(f"{kind}:{name}", base), PATHS)
      for kind in ("LA-U", "LA-F") for name in ("REQUEST_FILENAME", "REQUEST_URI", "QUERY_STRING", "IS_SUBREQ",
                                                "REQUEST_METHOD", "PATH_INFO", "HTTP_USER_AGENT", "NOSUCH")
      for with_base, base in (("base", "RewriteBase /\n"),)),
    site("la-u-user", "AuthType Basic\nAuthName U\nAuthUserFile @ROOT@/.htpasswd\nRequire valid-user\n"
         + shows("LA-U:REMOTE_USER"), [("GET", path, BOB) for path in PATHS[:6]] + ["/a.txt"]),
    site("la-u-user-bare", "AuthType Basic\nAuthName U\nAuthUserFile @ROOT@/.htpasswd\nRequire valid-user\n"
         + shows("LA-U:REMOTE_USER", ""), [("GET", path, BOB) for path in PATHS[:6]] + ["/a.txt"]),
    site("la-u-user-rewrites", "AuthType Basic\nAuthName U\nAuthUserFile @ROOT@/.htpasswd\nRequire valid-user\n" + ON
         + "RewriteCond %{LA-U:REMOTE_USER} ^(.+)$\nRewriteRule ^home/(.*)$ of-%1/$1 [L]\n",
         [("GET", "/home/x.txt", BOB), ("GET", "/home/none", BOB), "/home/x.txt"], {"of-bob/x.txt": "bob's\n"}),
    site("la-f-user", "AuthType Basic\nAuthName U\nAuthUserFile @ROOT@/.htpasswd\nRequire valid-user\n"
         + shows("LA-F:REMOTE_USER", ""), [("GET", path, BOB) for path in PATHS[:6]] + ["/a.txt"]),
    of_user("equal", "Require expr \"%{REMOTE_USER} == 'bob'\"\n"),
    of_user("matched", "Require expr \"%{REMOTE_USER} =~ /^b/\"\n"),
    of_user("set", "Require expr \"-n %{REMOTE_USER}\"\n"),
    of_user("unequal", "Require expr \"%{REMOTE_USER} != 'bob'\"\n"),
    of_user("all", "<RequireAll>\nRequire valid-user\nRequire expr \"%{REMOTE_USER} == 'bob'\"\n</RequireAll>\n"),
    of_user("any", "<RequireAny>\nRequire all denied\nRequire expr \"%{REMOTE_USER} in {'bob'}\"\n</RequireAny>\n"),
    of_user("other", "Require expr \"%{REQUEST_METHOD} == 'PUT'\"\n"),
    site("la-u-env", "SetEnvIf Request_URI c.txt WHICH=c\n" + shows("LA-U:ENV:WHICH"), PATHS),
    site("la-u-bare", shows("LA-U:REQUEST_URI", ""), ["/a.txt", "/none"]),
    site("loop", ON + "RewriteCond %{REQUEST_URI}x -U\nRewriteRule ^(.*)$ - [E=A:1]\nHeader set X-A %{A}e env=A\n",
         ["/a.txt", "/none"]),
    site("index-of", ON + "RewriteBase /\nRewriteCond %{LA-U:REQUEST_FILENAME} index\\.html$\nRewriteRule ^d/$ /b.txt [L]\n",
         ["/d/", "/d/c.txt", "/"]),
    site("method", "<If \"%{REQUEST_METHOD} != 'GET'\">\nRequire all denied\n</If>\n" + asks("-U"),
         ["/ask?/a.txt", ("HEAD", "/ask?/a.txt", {})], {"h/.htaccess": ON + "RewriteCond /g/x -U\nRewriteRule ^ask$ - [G]\n",
          "g/.htaccess": "<If \"%{REQUEST_METHOD} != 'GET'\">\nRequire all denied\n</If>\n"}),
    site("method-elsewhere", "", ["/h/ask", ("HEAD", "/h/ask", {})],
         {"h/.htaccess": ON + "RewriteCond /g/x -U\nRewriteRule ^ask$ - [G]\n",
          "g/.htaccess": "<If \"%{REQUEST_METHOD} != 'GET'\">\nRequire all denied\n</If>\n"}),
    site("inside", "", ["/h/ask", "/g/x"],
         {"h/.htaccess": ON + "RewriteCond /g/x -U\nRewriteRule ^ask$ - [G]\n",
          "g/.htaccess": "<If \"%{IS_SUBREQ} == 'true'\">\nRequire all denied\n</If>\n", "g/x": "x\n"}),
    site("substitution", ON + "RewriteBase /\nRewriteRule ^go$ %{LA-U:REQUEST_URI}.txt [L]\n", ["/go", "/a.txt"],
         {"go.txt": "gone there\n"}),
]


def tls(name, text, more=None):
    return site("tls-" + name, text, ["/a.txt", "/closed/x.txt", ("GET", "/a.txt", BOB)], more)


USERS = "AuthType Basic\nAuthName U\nAuthUserFile @ROOT@/.htpasswd\nRequire valid-user\n"

AHEAD += [
    tls("required", "SSLRequireSSL\n"),
    tls("required-below", "", {"closed/.htaccess": "SSLRequireSSL\n"}),
    tls("requirement-in-the-clear", "SSLRequire %{SSL_CIPHER_USEKEYSIZE} >= 128\n"),
    tls("false-in-the-clear", "SSLRequire false\n"),
    tls("words", "SSLRequire ( %{SSL_CIPHER} !~ m/^(EXP|NULL)-/ and %{SSL_CLIENT_S_DN_O} eq \"Snake Oil, Ltd.\" \\\n"
        " and %{SSL_CLIENT_S_DN_OU} in {\"Staff\", \"CA\"} and %{TIME_WDAY} >= 1 ) or %{REMOTE_ADDR} =~ m/^127/\n"),
    tls("broken", "SSLRequire %{SSL_CIPHER\n"),
    tls("broken-words", "SSLRequire %{SSL_CIPHER} eq\n"),
    tls("no-such-function", "SSLRequire nosuch(\"a\") eq \"b\"\n"),
    tls("options", "SSLOptions +StdEnvVars +StrictRequire\n"),
    tls("no-such-option", "SSLOptions +NoSuch\n"),
    tls("satisfy-any", USERS + "SSLRequireSSL\nSatisfy Any\n"),
    tls("satisfy-any-strict", USERS + "SSLRequireSSL\nSatisfy Any\nSSLOptions +StrictRequire\n"),
    tls("satisfy-any-denied", USERS + "SSLRequireSSL\nSatisfy Any\nOrder allow,deny\n"),
    tls("satisfy-all", USERS + "SSLRequireSSL\n"),
    tls("module", "<IfModule mod_ssl.c>\nSSLRequireSSL\n</IfModule>\n"),
    tls("variables", "<If \"%{SSL_PROTOCOL} == ''\">\nHeader set X-A clear\n</If>\n"),
    tls("rule-variables", ON + "RewriteCond %{SSL:SSL_PROTOCOL} =\"\"\nRewriteRule ^a b.txt\n"),
    tls("rule-https", ON + "RewriteCond %{SSL:HTTPS} off\nRewriteRule ^a b.txt\n"),
]
