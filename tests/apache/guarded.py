"""What keeps clients out at places that are passed on, and what rules lead around, in one configuration.

Each entry is a virtual host and the paths that are asked of it, which both servers have to answer alike.
"""

TO = "ProxyPass /app http://127.0.0.1:@BACK@/"
TEN = "Require ip 10"
OWN = "Require ip 127"
ALL = "Require all granted"
NONE = "Require all denied"
BASIC = "AuthType Basic\nAuthName x\nAuthUserFile @WWW@/one/.htpasswd\nRequire valid-user"
ON = "RewriteEngine on"


def at(path, *lines):
    return f'<Location "{path}">\n' + "\n".join(lines) + "\n</Location>"


def where(regex, *lines):
    return f'<LocationMatch "{regex}">\n' + "\n".join(lines) + "\n</LocationMatch>"


def proxied(address, *lines):
    return f'<Proxy "{address}">\n' + "\n".join(lines) + "\n</Proxy>"


CASES = [
    # What is about other places, or about the address of the proxied server.
    ([TO, at("/app", TEN), where("^/other", ALL), at("/app", "AuthName y")], ["/app", "/app/x"]),
    ([TO, at("/app", TEN), at("/other/*.css", ALL), proxied("http://other.example/", ALL)], ["/app", "/app/x"]),
    ([TO, at("/app", TEN), proxied("*", ALL)], ["/app/x"]),
    ([TO, at("/app", TEN), proxied("*", "Order deny,allow", "Allow from all")], ["/app/x"]),
    ([TO, at("/", ALL), proxied("*", TEN)], ["/app/x"]),
    ([TO, proxied("http://127.0.0.1:@BACK@/*", TEN)], ["/app/x"]),
    (["ProxyPass / http://127.0.0.1:@BACK@/", at("/", BASIC), where(r"^/\.well-known/", ALL)],
     ["/x", "/.well-known/a", "/.well-known"]),
    # What adds up.
    ([TO, at("/app", "Order allow,deny", "Deny from all"), at("/app/x", ALL)], ["/app/x/y", "/app/z"]),
    ([TO, at("/app", "Order allow,deny", "Allow from 127"), at("/app/x", ALL)], ["/app/x/y", "/app/z"]),
    ([TO, at("/app", BASIC), at("/app/deep", "AuthName z", "AuthUserFile /none"), at("/app/open", ALL)],
     ["/app/x", "/app/deep/x", "/app/open/x"]),
    ([TO, at("/app/x", TEN), at("/app", ALL)], ["/app/x/y"]),
    ([TO, at("/app", ALL), at("/app/x/", NONE), at("/app/x", "AuthName y")], ["/app/x", "/app/x/y", "/app/xy"]),
    ([TO, where(r"\.env$", NONE), at("/app/*/priv", NONE), '<Location ~ "/til">\n' + NONE + "\n</Location>"],
     ["/app/x", "/app/x.env", "/app/x/priv", "/app/x/y/priv", "/app/until"]),
    ([TO, '<If "%{REQUEST_URI} =~ m#^/app/adm#">\n' + NONE + "\n</If>"], ["/app/x", "/app/adm"]),
    ([TO, at("/app", "<RequireAll>", ALL, "Require not ip 127", "</RequireAll>")], ["/app/x"]),
    ([TO, at("/app", "Order deny,allow", "Deny from all", "Allow from 127")], ["/app/x"]),
    (["ProxyPass /app http://127.0.0.1:@BACK@"], ["/app", "/app/", "/app/x"]),
    # Rules, and what follows them.
    ([ON, "RewriteRule .* - [L]", r"RedirectMatch 403 /\.git", "Redirect 404 /a.txt"], ["/.git/config", "/a.txt", "/in.txt"]),
    ([ON, "RewriteRule ^/in/(.*) /private/$1 [PT,L]", "Redirect 403 /private"], ["/in/x.txt"]),
    ([ON, "RewriteRule ^/a - [L]", "RewriteRule txt$ - [F]", "Redirect 410 /in.txt"], ["/a.txt", "/in.txt"]),
    ([ON, "RewriteRule ^/in/(.*)$ /$1 [L]", at("/in", NONE)], ["/in/a.txt", "/a.txt"]),
    ([ON, "RewriteRule ^/in/(.*)$ /$1 [PT]", at("/in", NONE)], ["/in/a.txt", "/a.txt"]),
    # A line feed hides nothing of a path, and is no end of one.
    ([TO, where("^/app/private(/.*)?$", NONE), at("/app/pr?v", NONE)],
     ["/app/private/x%0ay", "/app/private%0a", "/app/prxv%0a", "/app/pr%0av", "/app/x%0a/private"]),
    ([TO, '<If "%{REQUEST_URI} =~ m#^/app/x(.*)$#">\n' + NONE + "\n</If>"], ["/app/xa%0ab", "/app/x%0a", "/app/%0ax"]),
    ([TO, where(r"^/app/[^/]*\.x$", NONE)], ["/app/a%0ab.x", "/app/a.x%0a", "/app/a.x"]),
    (["ProxyPassMatch ^/z(.*)$ !", "ProxyPassMatch ^(/.*)$ http://127.0.0.1:@BACK@$1"], ["/a%0ab", "/a%0a"]),
    ([ON, r"RewriteRule ^/a\.txt(.*)$ - [F]", "RewriteRule ^/b$ - [F]"],
     ["/a.txt/x%0ay", "/a.txt%0a", "/b%0a", "/b"]),
    ([ON, "RewriteCond %{REQUEST_URI} ^/a(.*)t$ [NC]", "RewriteRule .* - [F]"], ["/A%0at", "/at%0a", "/a.txt"]),
    ([ON, "RewriteRule !^/a(.*)t$ - [G]"], ["/a%0at", "/at%0a", "/a.txt"]),
    (["RedirectMatch 403 ^/a(.*)$", "Redirect gone /b"], ["/a%0ab", "/a%0a", "/b/x%0ay", "/b%0a", "/b"]),
    (['<FilesMatch "^a.*t$">\n' + NONE + "\n</FilesMatch>", '<DirectoryMatch "/x.*e$">\n' + NONE + "\n</DirectoryMatch>"],
     ["/a.txt", "/a%0at", "/at%0a", "/in.txt"]),
    # Names of files say nothing about what is passed on.
    ([TO, '<Files "*.php">\nSetHandler None\n</Files>', "RemoveHandler .php"], ["/app/x.php", "/app/x.php/y"]),
    # What a condition found is escaped, too.
    ([ON, "RewriteCond %{REQUEST_URI} ^/old(.*)$", "RewriteRule ^ https://o.test%1 [R=301,L]",
      "RewriteCond %{HTTP_HOST} ^g", "RewriteCond %{REQUEST_URI} ^/OLDER/(a)(.*)$ [NC]", "RewriteRule ^(.*)$ /new/%2-%1 [R]"],
     ["/old/100%25", "/old/a%2541", "/old/a%25250ab", "/old/x%20y", "/older/ab%25", "/x"]),
    (["UseCanonicalName On", "Redirect /r /x"], ["/listed", "/r/y"]),
    # Wildcards, and paths that the file system names otherwise.
    ([at("/", TEN), at("/pri*", ALL), at("/in.t?t", OWN)], ["/private/x.txt", "/in.txt", "/a.txt"]),
    (['<Directory "@WWW@/one/./private">\n' + NONE + "\n</Directory>",
      '<Directory "@WWW@/x/../one/closed">\n' + NONE + "\n</Directory>"], ["/private/x.txt", "/closed/x.txt", "/a.txt"]),
]

HOSTS = "".join(
    f"<VirtualHost *:@PORT@>\nServerName g{number}.test\nDocumentRoot @WWW@/one\n" + "\n".join(lines) + "\n</VirtualHost>\n"
    for number, (lines, _) in enumerate(CASES))
REQUESTS = [("GET", path, {"Host": f"g{number}.test"}) for number, (_, paths) in enumerate(CASES) for path in paths]
CONF = """<Directory "@WWW@/one">
    Require all granted
</Directory>
""" + HOSTS
