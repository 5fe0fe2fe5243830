"""What is passed on to balancers, whose error pages are shown, and where redirects lead."""

BACK = "http://127.0.0.1:@BACK@"


def balancer(*members):
    lines = "".join(f"BalancerMember {one}\n" for one in members)
    return f"<Proxy balancer://c>\n{lines}</Proxy>\nProxyPassReverse /b balancer://c\nProxyPass /b balancer://c"


CASES = [
    ([balancer(f"{BACK}/only")], ["/b/x", "/b", "/b/", "/b/moved"]),
    ([balancer(f"{BACK}/only/deep", f"http://localhost:@BACK@/only/deep status=+H") + "/more"], ["/b/x", "/b/moved"]),
    ([balancer(BACK)], ["/b/x", "/b/a/b", "/b/moved"]),
    ([balancer(BACK), "ProxyPreserveHost On"], ["/b/x"]),
    ([f"ProxyPass /b {BACK}", "ProxyErrorOverride On", "ErrorDocument 404 /a.txt"],
     ["/b/failing/503", "/b/failing/404", "/b/failing/418", "/b/x"]),
    ([f"<Location /b>\nProxyPass {BACK}\nProxyErrorOverride On\n</Location>", f"ProxyPass /c {BACK}"],
     ["/b/failing/500", "/b/failing/403", "/c/failing/500"]),
    (["ProxyErrorOverride On 500", f"ProxyPass /b {BACK}"], ["/b/failing/500", "/b/failing/503"]),
]
HOSTS = "".join(
    f"<VirtualHost *:@PORT@>\nServerName p{number}.test\nDocumentRoot @WWW@/one\n" + "\n".join(lines) + "\n</VirtualHost>\n"
    for number, (lines, _) in enumerate(CASES))
# The servers of a port come before those of any.
ANY = """<VirtualHost *>
ServerName any.test
DocumentRoot @WWW@/one
Redirect 301 / http://any.test/any
</VirtualHost>
"""
CONF = """<Directory "@WWW@/one">
    Require all granted
</Directory>
""" + ANY + HOSTS
REQUESTS = [("GET", path, {"Host": f"p{number}.test"}) for number, (_, paths) in enumerate(CASES) for path in paths]
REQUESTS += [("GET", "/listed", {"Host": host}) for host in ("p0.test", "p0.test:8080", "P0.test:443", "p0.test:80")]
REQUESTS += [("GET", path, {"Host": "any.test"}) for path in ("/a.txt", "/x")]
REQUESTS += [("GET", "/b/x", {"Host": "p0.test:8080", "X-Forwarded-Host": "h"})]
