"""Owns: mistakes in directives about TLS; both programs must say the same about each."""
from compare.mistakes import HEAD, whole

CERT = "ssl_certificate cert.pem; ssl_certificate_key cert.key;"


def tls(text, own=CERT):
    """A server with TLS that says this as well."""
    name = text if own == CERT else f"{own} {text}"
    server = f"server {{ listen 127.0.0.1:@P1@ ssl;\n{text}\n{own} }}"
    whole(f"tls: {name}", f"{HEAD}http {{ access_log off;\n{server} }}\n")


for words in (
    "ssl_session_ticket_key none;", "ssl_session_ticket_key cert.pem;", "ssl_session_ticket_key;",
    "ssl_session_ticket_key a b;", "ssl_session_tickets maybe;", "ssl_session_tickets on; ssl_session_tickets on;",
    "ssl_session_cache builtin:x;", "ssl_session_cache builtin:0;", "ssl_session_cache shared:x:1k;",
    "ssl_session_cache shared::1m;", "ssl_session_cache a b c;", "ssl_session_cache none;",
    "ssl_session_cache builtin:9 shared:x:1m;", "ssl_session_cache shared:x:1m shared:x:2m;",
    "ssl_session_timeout x;", "ssl_session_timeout -1;", "ssl_session_timeout 0;",
    "ssl_password_file none;", "ssl_password_file;", "ssl_password_file cert.pem;",
    "ssl_password_file cert.pem; ssl_password_file cert.pem;",
    "ssl_certificate_cache off;", "ssl_certificate_cache max=0;", "ssl_certificate_cache max=x;",
    "ssl_certificate_cache inactive=9s;", "ssl_certificate_cache max=9 inactive=x;",
    "ssl_certificate_cache max=9 valid=x;", "ssl_certificate_cache bogus;", "ssl_certificate_cache;",
    "ssl_certificate_cache max=1 max=2;", "ssl_certificate_cache off; ssl_certificate_cache off;",
    "ssl_stapling on;", "ssl_stapling maybe;", "ssl_stapling on; ssl_stapling on;", "ssl_stapling_verify maybe;",
    "ssl_stapling on; ssl_stapling_file none;", "ssl_stapling on; ssl_stapling_file empty.pem;",
    "ssl_stapling on; ssl_certificate_compression on;", "ssl_certificate_compression x;",
    "ssl_stapling_responder;", "ssl_protocols bogus;", "ssl_protocols TLSv1.2 TLSv1.2;", "ssl_protocols;",
    "ssl_ciphers bogus;", "ssl_ciphers \"\";", "ssl_ciphers @STRENGTH;", "ssl_ciphers HIGH:@BOGUS;",
    "ssl_ciphers HIGH:@SECLEVEL=9;", "ssl_ciphers TLS_AES_128_GCM_SHA256;", "ssl_ciphers PROFILE=SYSTEM;",
    "ssl_ciphers HIGH; ssl_ciphers HIGH;", "ssl_ciphers !bogus:HIGH;", "ssl_ciphers HIGH:!aNULL:!MD5:@SECLEVEL=1;",
    "ssl_ciphers ECDHE-RSA-AES128-GCM-SHA256:!ECDHE-RSA-AES128-GCM-SHA256;",
    "ssl_ecdh_curve bogus;", "ssl_ecdh_curve X25519:bogus;", "ssl_ecdh_curve auto;", "ssl_ecdh_curve X25519 P-256;",
    "ssl_ecdh_curve X25519:P-256:secp384r1;", "ssl_ecdh_curve \"\";",
    "ssl_conf_command bogus x;", "ssl_conf_command Ciphersuites bogus;", "ssl_conf_command Options Bogus;",
    "ssl_conf_command Curves bogus;", "ssl_conf_command Groups X25519;", "ssl_conf_command MinProtocol bogus;",
    "ssl_conf_command MinProtocol TLSv1.2;", "ssl_conf_command x;",
    "ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;",
    "ssl_dhparam none;", "ssl_dhparam cert.pem;", "ssl_prefer_server_ciphers x;", "ssl_buffer_size x;",
    "ssl_buffer_size 0;", "ssl_early_data x;", "ssl_early_data on;", "ssl_reject_handshake x;", "ssl_verify_depth x;",
    "ssl_verify_depth -1;", "ssl_crl none;", "ssl_crl cert.pem;", "ssl_trusted_certificate none;",
    "ssl_key_log x;", "ssl_encrypted_hello_keys x;", "ssl on;", "ssl_engine x;", "ssl_object_cache_inheritable on;",
    "ssl_ocsp x;", "ssl_ocsp off;", "ssl_ocsp_cache off;", "ssl_ocsp_cache bogus;", "ssl_ocsp_cache shared:x:1k;",
    "ssl_ocsp_cache shared:x:1m;",
):
    tls(words)
for words in (
    "ssl_certificate $ssl_server_name.pem; ssl_certificate_key cert.key;",
    "ssl_certificate $nonesuch.pem; ssl_certificate_key cert.key;",
    "ssl_certificate $ssl_server_name.pem;", "ssl_certificate data:x; ssl_certificate_key cert.key;",
    "ssl_certificate cert.pem; ssl_certificate_key data:x;", "ssl_certificate empty.pem; ssl_certificate_key cert.key;",
    "ssl_certificate cert.pem; ssl_certificate_key cert.key; ssl_certificate_key none.key;",
    "ssl_certificate cert.pem; ssl_certificate cert.pem; ssl_certificate_key cert.key;",
):
    tls("", words)
