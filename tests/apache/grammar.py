"""Random .htaccess files, the trees that they stand in, and requests for them.

What differs from Apache on purpose (docs/differences-from-apache.md) is not made.
"""

PATHS = ["a.txt", "b.html", "c.css", "d.en.txt", "index.html", "page.png", "none", "none.txt"]
DIRECTORIES = ["", "d/", "d/e/"]


def tree_of(chance, reaches=False):
    """Files by path; with lines that reach beyond the request itself, if that is wanted."""
    files = {}
    for directory in DIRECTORIES:
        for name in PATHS[:6]:
            files[directory + name] = f"{directory}{name}\n"
        if directory == "" or chance.random() < 0.5:
            files[directory + ".htaccess"] = "\n".join(block(chance, 0) for _ in range(chance.randint(1, 5)))
    # A filter that is named in two ways searches twice there.
    how = chance.choice(SEARCHES) if reaches else ""
    for path in [path for path in files if reaches and path.endswith(".htaccess")]:
        more = reach(chance, how)
        files[path] = chance.choice([f"{files[path]}\n{more}", f"{more}\n{files[path]}", more])
    files["bare/x.txt"] = "x\n"
    files[".htpasswd"] = "bob:{SHA}GpHWL3ymc5liWkNopqtdSjuqYHM=\n"
    return files


def requests_of(chance):
    """Requests for that tree."""
    fixed = [("GET", "/", {}), ("GET", "/a.txt", {}), ("GET", "/d/e/a.txt?x=1", {}), ("GET", "/d", {}),
             ("GET", "/none/more?y", {})]
    return fixed + [request(chance) for _ in range(12)]


def request(chance):
    path = "/" + chance.choice(DIRECTORIES + ["bare/", "new/", "x/y/"]) + chance.choice(PATHS + ["", "", "d", "e", "A.TXT"])
    path += chance.choice(["", "", "", "", "/", "/more"])
    path = chance.choice([path] * 8 + [path.replace("a", "%61"), path + "%20x", path + "%3Fq"])
    path += chance.choice(["", "", "", "?x=1", "?x=1&y=2", "?y", "?a%20b"])
    fields = {}
    for name, values in FIELDS.items():
        if chance.random() < 0.25:
            fields[name] = chance.choice(values)
    return chance.choice(["GET"] * 8 + ["HEAD", "POST"]), path, fields


FIELDS = {
    "User-Agent": ["Mozilla/5.0", "BadBot/1", "curl/8"],
    "X-Own": ["1", "ab", ""],
    "Cookie": ["a=1", "b=2; a=3"],
    "Referer": ["http://site.test/", "http://other.test/x"],
    "Accept": ["image/webp", "text/html"],
    "Accept-Encoding": ["gzip", "identity"],
    "Authorization": ["Basic Ym9iOnB3", "Basic Ym9iOnh4"],
    "Host": ["www.site.test", "SITE.test"],
}


def block(chance, depth):
    """A line, several that belong together, or a section."""
    kinds = [(12, line), (2, access), (1, auth)]
    # Rules within sections by name or by condition are no part of what Apache supports.
    if depth == 0:
        kinds.append((8, rules))
    if depth < 2:
        kinds += [(3, section), (2, condition)]
    made = chance.choices([make for _, make in kinds], [weight for weight, _ in kinds])[0]
    return made(chance, depth)


def inner(chance, depth):
    return "\n".join(block(chance, depth + 1) for _ in range(chance.randint(1, 3)))


def section(chance, depth):
    if depth > 0:
        return condition(chance, depth)
    opened, closed = chance.choice([
        ('<Files "*.txt">', "Files"), ('<Files "a.*">', "Files"), ('<FilesMatch "^[ab]\\.">', "FilesMatch"),
        ('<FilesMatch "\\.(css|html)$">', "FilesMatch"), ('<Files ~ "txt$">', "Files"), ('<Files "index.html">', "Files"),
        ("<IfModule mod_headers.c>", "IfModule"), ("<IfModule !mod_rewrite.c>", "IfModule"), ("<IfVersion >= 2.4>", "IfVersion"),
        ("<IfDefine NOPE>", "IfDefine"), ('<Files "">', "Files"), ('<Files "?.txt">', "Files"), ('<Files "[a-c].*">', "Files"),
    ])
    return f"{opened}\n{inner(chance, depth)}\n</{closed}>"


def expression(chance):
    one = chance.choice([
        "%{REQUEST_URI} =~ m#/d/#", "%{QUERY_STRING} == 'x=1'", "%{HTTP_USER_AGENT} =~ /Bad/", "%{REQUEST_METHOD} == 'GET'",
        "-n %{HTTP_COOKIE}", "-z %{QUERY_STRING}", "%{REQUEST_FILENAME} =~ /txt$/", "%{HTTP:X-Own} -eq 1", "true", "false",
        "%{REMOTE_ADDR} -ipmatch '127.0.0.0/8'", "%{HTTP_HOST} in {'site.test', 'b'}", "req('X-Own') == 'ab'", "-R '10.0.0.0/8'",
        "%{REQUEST_URI} -strmatch '*/a*'", "tolower(%{HTTP_HOST}) == 'site.test'", "-f %{REQUEST_FILENAME}", "%{HTTPS} == 'off'",
        "%{QUERY_STRING} =~ /x=([0-9])/ && $1 == '1'", "%{REQUEST_URI} -fnmatch '/*.txt'", "%{QUERY_STRING} -gt 5", "env('SEEN') == '1'",
    ])
    return chance.choice([one] * 4 + [f"!({one})", f"{one} || %{{QUERY_STRING}} == 'y'", f"{one} && -n req('X-Own')"])


def condition(chance, depth):
    text = f'<If "{expression(chance)}">\n{inner(chance, depth)}\n</If>'
    if chance.random() < 0.3:
        text += f'\n<ElseIf "{expression(chance)}">\n{inner(chance, depth)}\n</ElseIf>'
    if chance.random() < 0.3:
        text += f"\n<Else>\n{inner(chance, depth)}\n</Else>"
    return text


def access(chance, depth):
    single = ["Require all granted", "Require all denied", "Require ip 127.0.0.1", "Require ip 10 192.168", "Require env SEEN",
              "Require method GET", "Require not env SEEN", "Require local", "Require expr %{QUERY_STRING} != 'x=1'", "Require method POST HEAD"]
    listed = [one for one in single if " not " not in one]
    return chance.choice([
        chance.choice(single),
        "<RequireAll>\nRequire all granted\n" + chance.choice(single) + "\n</RequireAll>",
        "<RequireAny>\n" + "\n".join(chance.sample(listed, 2)) + "\n</RequireAny>",
        "<RequireAll>\n" + chance.choice(listed) + "\n<RequireNone>\n" + chance.choice(listed) + "\n</RequireNone>\n</RequireAll>",
        chance.choice(["Order allow,deny", "Order deny,allow", "Order Deny,Allow"]) + "\n"
        + chance.choice(["Allow from all", "Deny from all", "Allow from 127.0.0.1", "Deny from env=SEEN", "Allow from env=SEEN", "Deny from 127"]),
        "Deny from all", "Allow from all", "Satisfy all", "AuthMerging And" if depth == 0 else "Satisfy All",
        "<Limit POST>\nRequire all denied\n</Limit>", "<LimitExcept GET HEAD>\nDeny from all\n</LimitExcept>",
    ])


def auth(chance, _depth):
    return ("AuthType Basic\nAuthName \"a place\"\nAuthUserFile @ROOT@/.htpasswd\n"
            + chance.choice(["Require valid-user", "Require user bob", "Require user ann", "<RequireAny>\nRequire valid-user\nRequire env SEEN\n</RequireAny>"]))


def line(chance, _depth):
    name = chance.choice(["X-One", "X-Two", "Cache-Control", "X-Robots-Tag"])
    value = chance.choice(["a", "b", '"c d"', "%{SEEN}e", '"expr=%{REQUEST_URI}"', '"expr=%{HTTP_HOST}"', "max-age=60", '""'])
    when = chance.choice(["", "", "", " env=SEEN", " env=!SEEN", ' "expr=%{QUERY_STRING} == \'x=1\'"'])
    makes = [
        lambda: f"Header {chance.choice(['', 'always ', 'onsuccess '])}{chance.choice(['set', 'append', 'add', 'merge', 'setifempty'])} {name} {value}{when}",
        lambda: f"Header {chance.choice(['', 'always '])}unset {name}{when}",
        lambda: f"Header {chance.choice(['edit', 'edit*'])} {name} {chance.choice(['a', '^(.)', '[bc]'])} {chance.choice(['Z', '<$1>', chr(34) + chr(34)])}",
        lambda: chance.choice(["Header unset ETag", "Header echo ^X-Own", "FileETag None", "Header append Vary Cookie",
                               "Header unset Content-Type", "Header set Last-Modified x"]),
        lambda: f"RequestHeader {chance.choice(['set', 'append', 'unset', 'add'])} X-Own" + chance.choice(["", " 1", " ab"]),
        lambda: "ExpiresActive " + chance.choice(["on", "off"]),
        lambda: chance.choice(["ExpiresDefault A60", 'ExpiresDefault "access plus 1 hour"', 'ExpiresByType text/css "now plus 2 days"',
                               "ExpiresByType text/* A5", "ExpiresByType text/css M100000000"]),
        lambda: chance.choice(["DirectoryIndex a.txt", "DirectoryIndex disabled", "DirectoryIndex none b.html", "DirectoryIndex @URL@/a.txt", "DirectoryIndex index.html",
                               "DirectorySlash off", "DirectorySlash on", "FallbackResource @URL@/a.txt", "FallbackResource disabled", "FallbackResource @URL@/d/b.html"]),
        lambda: "Options " + chance.choice(["-Indexes", "+Indexes", "None", "All", "-FollowSymLinks", "FollowSymLinks", "-FollowSymLinks +SymLinksIfOwnerMatch", "Indexes FollowSymLinks"]),
        lambda: chance.choice(["AddType text/own .txt", "AddType application/x-own own css", "ForceType text/plain", "ForceType None", "RemoveType .txt .css",
                               "AddCharset utf-8 .txt", "AddCharset koi8-r .html", "RemoveCharset .txt", "AddDefaultCharset utf-8", "AddDefaultCharset Off", "AddDefaultCharset On",
                               "AddEncoding gzip .png", "RemoveEncoding .png", "AddHandler default-handler .txt", "SetHandler none", "SetHandler default-handler", "RemoveHandler .txt",
                               "AddLanguage en .en", "AddLanguage fr-CA txt", "AddLanguage de .html .css", "DefaultLanguage it", "RemoveLanguage .en", "RemoveLanguage .txt .html"]),
        lambda: f"SetEnvIf {chance.choice(['User-Agent Bad', 'X-Own ^1$', 'Request_URI txt', 'Referer other', 'Request_Method GET', 'Remote_Addr ^127', 'X-None ^$'])} {chance.choice(['SEEN', 'SEEN=1', '!SEEN', 'SEEN=$0'])}",
        lambda: chance.choice(["SetEnvIfNoCase X-Own AB SEEN=1", "BrowserMatch Mozilla SEEN", "BrowserMatchNoCase bad SEEN=bad", "SetEnv SEEN set", "UnsetEnv SEEN",
                               "SetEnvIfExpr \"%{QUERY_STRING} =~ /x/\" SEEN=1", "SetEnv Y y"]),
        lambda: f"Redirect {chance.choice(['', '301 ', '302 ', 'permanent ', 'seeother ', '307 '])}@URL@/{chance.choice(['none', 'old', 'd/none', 'x'])} {chance.choice(['/to', 'http://x.test/y', '/to?q=1'])}",
        lambda: chance.choice(["Redirect gone @URL@/none", "Redirect 404 @URL@/d/e", "RedirectMatch 403 \\.css$", "RedirectMatch ^(.*)/old/(.*)$ $1/$2", "RedirectMatch 301 none/(.*) /to/$1",
                               "RedirectPermanent @URL@/x /y", "RedirectTemp @URL@/new http://n.test"]),
        lambda: chance.choice(["ErrorDocument 404 \"not here\"", "ErrorDocument 404 @URL@/a.txt", "ErrorDocument 403 @URL@/d/a.txt", "ErrorDocument 403 \"no", "ErrorDocument 404 http://x.test/",
                               "ErrorDocument 404 default", "ErrorDocument 401 \"who\"", "ErrorDocument 410 @URL@/none", "ErrorDocument 500 \"broken\"", "ErrorDocument 404 @URL@/a.txt?own"]),
        lambda: chance.choice(["AcceptPathInfo off", "AcceptPathInfo off", "AcceptPathInfo default", "LimitRequestBody 10", "IndexIgnore *.css", "# a comment", "", "Foo bar",
                               "AddOutputFilterByType DEFLATE text/plain", "SetOutputFilter DEFLATE"]),
    ]
    weights = [6, 3, 3, 3, 1, 2, 2, 3, 3, 6, 4, 3, 3, 2, 3, 2]
    return chance.choices(makes, weights)[0]()


SEARCHES = ["SetOutputFilter SUBSTITUTE", "AddOutputFilter SUBSTITUTE txt css", "SetOutputFilter SUBSTITUTE;DEFLATE"]


def reach(chance, how):
    """Rules that look ahead, bodies that are searched, requirements of a connection."""
    subject = chance.choice(["%{REQUEST_FILENAME}", "%{REQUEST_URI}", "@ROOT@/a.txt", "@URL@/d/a.txt", "a.txt", "%{QUERY_STRING}",
                             "@ROOT@/d/e/$0", "@URL@/none", "%{LA-U:REQUEST_FILENAME}", "%{LA-F:REQUEST_FILENAME}", "@URL@/d/"])
    test = chance.choice(["-U", "!-U", "-F", "!-F", "-f", "txt$", "!^$"])
    rule = chance.choice(["^ - [E=SEEN:yes,NS]", "^(.*)x$ - [G,NS]", "a a.txt [L,NS]", "^none @URL@/d/b.html [NS]", "^ - [F,NS]",
                          "^(.*)$ - [E=SEEN:%{LA-U:REQUEST_URI},NS]", "^(.*)$ - [E=SEEN:%{LA-F:REQUEST_URI},NS]", "c\\. - [R=404]"])
    ahead = "\n".join(["RewriteEngine on", *chance.choice([[], ["RewriteBase @URL@/"]]), f"RewriteCond {subject} {test}",
                       f"RewriteRule {rule}", "Header set X-Seen %{SEEN}e env=SEEN"])
    one = lambda: "Substitute " + chance.choice(["s/a/A/", "s/[.]txt/-/", "s/(a)(.)/$2$1/", "s/T/x/ni", "s/b/tt/q", "s/t$/T/", "s/^[abcd]/<&>/", "s/.$/$0$0/"])
    searched = "\n".join([how, *(one() for _ in range(chance.randint(1, 3))), *chance.choice([[], [], ["SubstituteInheritBefore on"]])])
    connection = chance.choice(["SSLRequireSSL", "SSLRequire false", "SSLRequireSSL\nSatisfy Any\nRequire all denied", "SSLOptions +StrictRequire",
                                "<If \"%{SSL_CIPHER} == ''\">\nHeader set X-Clear 1\n</If>", "SSLRequireSSL\nSatisfy Any\nRequire local"])
    return chance.choice([ahead, ahead, ahead, searched, searched, connection, f"{ahead}\n{searched}"])


def rules(chance, _depth):
    lines = []
    if chance.random() < 0.85:
        lines.append("RewriteEngine " + chance.choice(["on"] * 6 + ["off"]))
    if chance.random() < 0.2:
        lines.append(chance.choice(["RewriteBase @URL@/", "RewriteBase @URL@/d", "RewriteBase /"]))
    if chance.random() < 0.2:
        lines.append("RewriteOptions " + chance.choice(["Inherit", "InheritBefore", "InheritDown", "InheritDownBefore", "IgnoreInherit", "AllowNoSlash", "MergeBase"]))
    for _ in range(chance.randint(1, 3)):
        lines += [rewrite_condition(chance) for _ in range(chance.choice([0, 0, 1, 1, 2, 3]))]
        lines.append(rewrite_rule(chance))
    return "\n".join(lines)


def rewrite_condition(chance):
    text, test = chance.choice([
        ("%{REQUEST_FILENAME}", "!-f"), ("%{REQUEST_FILENAME}", "!-d"), ("%{REQUEST_FILENAME}", "-f"), ("%{REQUEST_FILENAME}", "-d"), ("%{QUERY_STRING}", "^x=(.*)$"),
        ("%{QUERY_STRING}", "!x"), ("%{QUERY_STRING}", "=x=1"), ("%{REQUEST_URI}", "/d/"), ("%{REQUEST_URI}", "!\\.txt$"), ("%{HTTP_HOST}", "^www\\.(.+)$"), ("%{HTTP_HOST}", "!^www"),
        ("%{HTTP_USER_AGENT}", "Bad"), ("%{HTTP:X-Own}", "^(a)?(.)"), ("%{HTTPS}", "off"), ("%{HTTPS}", "!=on"), ("%{HTTP_COOKIE}", "a=([0-9])"), ("%{ENV:SEEN}", "1"),
        ("%{ENV:REDIRECT_STATUS}", "^$"), ("%{ENV:REDIRECT_STATUS}", "200"), ("%{THE_REQUEST}", "txt"), ("%{REQUEST_METHOD}", "!^(GET|HEAD)$"), ("%{DOCUMENT_ROOT}%{REQUEST_URI}", "-f"),
        ("$0", "a"), ("$1", "!=\"\""), ("%{REQUEST_FILENAME}", "-s"), ("%{QUERY_STRING}", ">m"), ("expr", '"%{QUERY_STRING} == \'y\'"'), ("%{HTTP_ACCEPT}", "webp"), ("%{REQUEST_FILENAME}.html", "-f"),
        ("%{REMOTE_ADDR}", "^127"), ("%{SERVER_PORT}", "!^443$"), ("%{QUERY_STRING}", "-gt0"), ("%{HTTP_REFERER}", "!^$"), ("%{NOSUCH}", "^$"), ("%{IS_SUBREQ}", "false"), ("%{REQUEST_FILENAME}", "!-l"),
    ])
    return f"RewriteCond {text} {test}" + chance.choice(["", "", "", "", " [OR]", " [NC]", " [NC,OR]", " [NV]"])


def rewrite_rule(chance):
    pattern = chance.choice(["^(.*)$", ".", "^", "^a\\.txt$", "^none/?(.*)$", "(.*)\\.(txt|html)$", "^d/(.*)$", "!^d/", "^$", "x", "^([a-z]+)/?$", "^index\\.html$", "NONE", "(?i)^A", "^(d/)?(e/)?(.*)$", "more$"])
    to = chance.choice(["-", "-", "-", "a.txt", "b.html", "@URL@/d/a.txt", "/to/$1", "d/$1", "$1.xhtml", "a.txt?n=$1", "?q", "@URL@/none", "http://x.test/$1", "http://%{HTTP_HOST}@URL@/$1",
                        "%{REQUEST_URI}.txt", "e/../a.txt", "d/", "index.html", "@ROOT@/c.css", "a.txt?%{QUERY_STRING}", "%1", "@URL@/$1?m=%1"])
    flags = chance.choice(["", "", "[L]", "[L]", "[END]", "[F]", "[G]", "[R]", "[R=301,L]", "[R=307]", "[QSA,L]", "[QSD]", "[NC]", "[C]", "[S=1]", "[PT]", "[E=SEEN:1]", "[E=SEEN:$1,L]", "[E=!SEEN]",
                           "[NE,R]", "[B]", "[B,R]", "[T=text/own]", "[CO=n:v:site.test]", "[DPI]", "[R=404]", "[R=403,L]", "[NS,F]", "[QSA,R]", "[L,NC,QSA]", "[E=SEEN:%1,NE]", "[BNP,B,R]", "[QSL]", "[N=3]"])
    # What comes of an address that a later rule rewrites is nothing to rely on.
    if to.startswith("http") and flags != "[F]" or "R" in flags.replace("[BNP", ""):
        flags = f"{flags[:-1]},L]" if flags not in ("", "[PT]", "[C]") else "[L]"
    return f"RewriteRule {pattern} {to} {flags}".rstrip()
