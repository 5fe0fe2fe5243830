"""Owns: recipes for clients with certificates, as administrators publish them.

Each server is visited without a certificate, with a good one, a revoked one and one of another
authority.
"""

from ..site import http
from .applications import FORWARDED, MAP
from .named_applications import with_host

KINDS = (None, "good", "one", "revoked", "wrong")
CA = "ssl_client_certificate @DIR@/clients/root.crt; ssl_verify_depth 2;"
CRL = "ssl_crl @DIR@/clients/root.crl;"


def recipe(name: str, around: str, inside: str, cases: list[str]) -> None:
    """A server over TLS that each kind of client visits."""
    host = f"{name.split(',', maxsplit=1)[0].replace(' ', '-')}.test"
    http(
        f"client certificates: {name}",
        f"""
        {MAP}
        log_format c '$request_uri|$status|$ssl_client_verify|$ssl_client_s_dn|$remote_user';
        upstream app {{ server @ORIGIN@; }}
        ssl_certificate @CERT@; ssl_certificate_key @KEY@;
        {around}
        server {{
            listen 127.0.0.1:@P0@; server_name _; return 301 https://$host$request_uri;
        }}
        server {{
            listen 127.0.0.1:@P1@ ssl; server_name {host}; root @DIR@/www;
            access_log @LOGS@/access.log c; {CA}
            {inside.replace("@FORWARDED@", FORWARDED)}
        }}
        """,
        [with_host(f"{case} | Connection: close", host) for case in cases],
        port=1,
        alone=True,
        identities=[(host, kind and f"@DIR@/clients/{kind}") for kind in KINDS],
        log=True,
        errors="info",
    )


# An origin behind a delivery network that shows its certificate ("authenticated origin pulls").
recipe(
    "origin pulls",
    "",
    """
    ssl_verify_client on; real_ip_header X-Client; set_real_ip_from 127.0.0.0/8;
    location / { proxy_pass http://app; @FORWARDED@ proxy_set_header X-Verify $ssl_client_verify; }
    location = /status { access_log off; return 204; }
    """,
    ["GET /a?b | X-Client: 192.0.2.1", "GET /status", "POST /a | Content-Length: 0"],
)
# The certificate is asked for everywhere and demanded below one path.
recipe(
    "devices",
    """
    map $ssl_client_s_dn $device { default ""; "~(?:^|,)CN=(?<cn>[^,]+)" $cn; }
    map "$ssl_client_verify:$uri" $refused { default 0; ~^SUCCESS: 0; "~:/(?:api|ota)/" 1; }
    """,
    """
    ssl_verify_client optional;
    if ($refused) { return 403 "no certificate: $ssl_client_verify"; }
    location /api/ { proxy_set_header X-Device $device; proxy_set_header X-Serial
        $ssl_client_serial; @FORWARDED@ proxy_pass http://app/; }
    location /ota/ { add_header X-Device $device always; try_files /hello.txt =404; }
    location / { return 200 "open for $device\\n"; }
    """,
    ["GET /", "GET /api/x?y=%20", "GET /ota/1.bin", "GET /x/../api/y", "HEAD /api/"],
)
# A dashboard that shows a page of its own to who has no certificate, or another one.
recipe(
    "dashboard",
    "",
    f"""
    ssl_verify_client on; {CRL}
    error_page 495 = @bad; error_page 496 =401 /hello.txt; error_page 497 https://$host$request_uri;
    location @bad {{ add_header X-Why $ssl_client_verify always; return 403 "not yours\\n"; }}
    location / {{ proxy_pass http://app; @FORWARDED@ }}
    location = /hello.txt {{ internal; }}
    """,
    ["GET /", "GET /hello.txt", "GET /d?panel=1 | Accept: text/html", "DELETE /d"],
)
# A certificate or a password: the name of the certificate goes to the application as the user.
recipe(
    "either",
    """
    map $ssl_client_verify $realm { SUCCESS off; default "staff"; }
    map $ssl_client_verify:$remote_user $user { "~^SUCCESS:" $ssl_client_s_dn_cn; ~:(?<u>.+)$ $u; }
    map $ssl_client_s_dn $ssl_client_s_dn_cn { default ""; "~CN=(?<name>[^,]*)" $name; }
    """,
    """
    ssl_verify_client optional; auth_basic $realm; auth_basic_user_file @DIR@/users;
    location / { proxy_set_header X-User $user; proxy_set_header Authorization "";
        proxy_pass http://app; @FORWARDED@ }
    location /metrics { auth_basic off; if ($ssl_client_verify != SUCCESS) { return 404; }
        return 200 "up 1\\n"; }
    """,
    ["GET /a", "GET /a | Authorization: Basic dTpw", "GET /metrics", "GET /a | Authorization: x"],
)
# The application verifies: it gets the certificate as a field, whoever signed it.
recipe(
    "passed on",
    "",
    """
    ssl_verify_client optional_no_ca;
    location / { proxy_pass http://app; proxy_set_header ssl-client-cert $ssl_client_escaped_cert;
        proxy_set_header ssl-client-verify $ssl_client_verify;
        proxy_set_header ssl-client-subject-dn $ssl_client_s_dn;
        proxy_set_header ssl-client-issuer-dn $ssl_client_i_dn; @FORWARDED@ }
    location /sha { return 200 "$ssl_client_fingerprint $ssl_client_v_remain\\n"; }
    """,
    ["GET /a", "GET /sha", "GET /a | ssl-client-verify: SUCCESS | ssl-client-cert: forged"],
)
# One team by the organisation in the certificate, behind an allow-list of addresses.
recipe(
    "teams",
    """
    map $ssl_client_s_dn $team { default none; "~O=A\\\\, B" lead; "~CN=one" ops; }
    map $team $limit { none $binary_remote_addr; default ""; }
    limit_req_zone $limit zone=strangers:1m rate=1r/m;
    """,
    """
    ssl_verify_client optional; satisfy any; allow 192.0.2.0/24; deny all;
    limit_req zone=strangers burst=5 nodelay; limit_req_status 429;
    location /lead/ { if ($team != lead) { return 404; } return 200 "for $team"; }
    location / { allow all; return 200 "team $team, issued by $ssl_client_i_dn\\n"; }
    location /any { auth_basic any; auth_basic_user_file @DIR@/users; proxy_pass http://app; }
    """,
    ["GET /", "GET /lead/x", "GET /lead/", "GET /any", "GET /any | Authorization: Basic dTpw"],
)
