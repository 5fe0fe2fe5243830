"""Owns: configurations with a mistake or an oddity; both programs must say the same about each.

MISTAKES are only tested (-t); STARTS are started and end at once. @P9@ is a port that is in use.
"""
MISTAKES, STARTS = [], []
HEAD = "pid @LOGS@/pid; error_log @LOGS@/start.log; events {}\n"


def whole(name, text):
    MISTAKES.append((name, text))


def main(text):
    whole(f"main: {text}", HEAD + text)


def http(text):
    whole(f"http: {text}", HEAD + "http { access_log off;\n" + text + "\n}\n")


def server(text):
    whole(f"server: {text}", HEAD + "http { access_log off; server { listen 127.0.0.1:@P0@;\n" + text + "\n} }\n")


def location(text):
    whole(f"location: {text}", HEAD + "http { access_log off; server { listen 127.0.0.1:@P0@; location / {\n" + text + "\n} } }\n")


def start(name, text):
    text = text.replace("http { server {", "http { access_log off; server {")
    STARTS.append((name, "daemon off;\n" + text))


whole("a good one", HEAD + "http { access_log off; server { listen 127.0.0.1:@P0@; } }\n")
whole("an empty file", "")
whole("no events", "pid @LOGS@/pid; error_log @LOGS@/start.log; http { }\n")
whole("only events", HEAD)
whole("a pid directory that is missing", "pid @DIR@/none/pid; error_log @LOGS@/start.log; events {}\n")
whole("an error log directory that is missing", "pid @LOGS@/pid; error_log @DIR@/none/e.log; events {}\n")
whole("no semicolon at the end", HEAD + "worker_processes 1")
whole("no brace at the end", HEAD + "http { server {\n")
whole("one brace too many", HEAD + "http { }\n}\n")
for text in ("lisen 80;", "server { }", "listen 80;", "worker_processes 0;", "worker_processes x;", "worker_processes 1 2;", "user nobodyknows;", "user root nogroup9;", "daemon maybe;",
             "events {}", "http {} http {}", "worker_rlimit_nofile x;", "error_log;", "error_log @LOGS@/e.log verbose;", "include nowhere.conf;", "include denied.conf;", "include broken.conf;", "include *.none;",
             "worker_cpu_affinity 01 10;", "pid a b;", "worker_shutdown_timeout x;", "env;", "load_module none.so;", "http { server { listen 80 } }", "\"quoted\"x;", ";", "{", "'open", "a {", "worker_processes 1 {}", "http;", "working_directory /none;", "timer_resolution x;", "thread_pool;", "lock_file;"):
    main(text)
for text in ("gzip yes;", "gzip on; gzip off;", "keepalive_timeout abc;", "client_max_body_size 10x;", "client_max_body_size -1;", "types { text/html html html; }", "types { text/html; }", "types { a b", "default_type;", "log_format a;", "log_format combined x;", "log_format a '$foo'; access_log @LOGS@/a a; server { listen 127.0.0.1:@P0@; }",
             "access_log @LOGS@/a nope;", "access_log @DIR@/none/a.log;", "access_log @LOGS@/a combined buffer=x;", "access_log @LOGS@/a combined gzip=11;", "access_log @LOGS@/a combined flush=x;", "include types.conf;", "sendfile maybe;", "index;", "root;", "root a b;", "root a; root b;", "server_names_hash_bucket_size x;", "large_client_header_buffers 4;", "large_client_header_buffers 0 1k;",
             "client_header_buffer_size 0;", "gzip_comp_level 10;", "gzip_types;", "gzip_types text/html;", "gzip_types text/css text/css;", "gzip_buffers 1;", "gzip_http_version 2;", "gzip_disable (;", "gzip_proxied nope;", "error_page 404;", "error_page 200 /x;", "error_page abc /x;", "error_page 404 =abc /x;", "error_page 404 =;", "error_page 499 /x;", "charset;", "open_file_cache max=0;", "open_file_cache x;", "open_file_cache inactive=5;",
             "expires;", "expires abc;", "expires modified;", "expires @25h;", "add_header;", "add_header A;", "add_header A b never;", "autoindex_format text;", "limit_rate x;", "if_modified_since after;", "satisfy most;", "resolver;", "server_tokens maybe;", "keepalive_requests x;", "http2 maybe;", "ssl_protocols TLSv9;", "ssl_session_cache shared:a;", "ssl_session_cache wrong;", "ssl_certificate none.pem;",
             "server { listen 127.0.0.1:@P0@; listen 127.0.0.1:@P0@; }", "server { listen 127.0.0.1:@P0@ default_server; } server { listen 127.0.0.1:@P0@ default_server; }", "server { listen 127.0.0.1:@P0@; server_name a; } server { listen 127.0.0.1:@P0@; server_name a; }", "server { listen 127.0.0.1:@P0@ backlog=5; } server { listen 127.0.0.1:@P0@ backlog=6; }", "server { listen 127.0.0.1:@P0@ http2; }",
             "server { listen 127.0.0.1:@P0@; listen 127.0.0.1:@P0@ default_server; }", "server { listen 127.0.0.1:@P0@; server_name a a; }", "upstream { }", "server a { }", "types_hash_max_size 0;", "variables_hash_max_size x;", "disable_symlinks maybe;", "disable_symlinks on from=;", "max_ranges x;", "keepalive_disable opera;", "client_body_temp_path a 9 9 9 9;", "error_log @DIR@/none/e.log;"):
    http(text)
for text in ("listen;", "listen x:y;", "listen 127.0.0.1:99999;", "listen 127.0.0.1:0;", "listen 300.0.0.1:80;", "listen 127.0.0.1:@P1@ root;", "listen 127.0.0.1:@P1@ backlog=x;", "listen 127.0.0.1:@P1@ rcvbuf=x;", "listen 127.0.0.1:@P1@ so_keepalive=x;", "listen unix:;", "listen [::1;", "listen [::]:@P1@ ipv6only=maybe;", "listen 127.0.0.1:@P1@ ipv6only=on;", "listen nohost.invalid:80;", "listen 127.0.0.1:@P1@ fastopen=x;", "listen 127.0.0.1:@P1@ quic ssl;",
             "listen 127.0.0.1:@P1@ quic;", "listen 127.0.0.1:@P1@ ssl;", "listen 127.0.0.1:@P1@ ssl; ssl_certificate none.pem; ssl_certificate_key none.key;", "listen 127.0.0.1:@P1@ ssl; ssl_certificate broken.pem; ssl_certificate_key cert.key;", "listen 127.0.0.1:@P1@ ssl; ssl_certificate empty.pem; ssl_certificate_key cert.key;", "listen 127.0.0.1:@P1@ ssl; ssl_certificate cert.pem; ssl_certificate_key none.key;", "listen 127.0.0.1:@P1@ ssl; ssl_certificate cert.pem; ssl_certificate_key broken.pem;",
             "listen 127.0.0.1:@P1@ ssl; ssl_certificate cert.pem; ssl_certificate_key stranger.key;", "listen 127.0.0.1:@P1@ ssl; ssl_certificate cert.pem;", "listen 127.0.0.1:@P1@ ssl; ssl_certificate_key cert.key;", "listen 127.0.0.1:@P1@ ssl; ssl_certificate cert.pem; ssl_certificate_key cert.key; ssl_ciphers NONSENSE;", "listen 127.0.0.1:@P1@ ssl; ssl_certificate cert.pem; ssl_certificate_key cert.key; ssl_ecdh_curve nonsense;",
             "listen 127.0.0.1:@P1@ ssl; ssl_certificate cert.pem; ssl_certificate_key cert.key;", "ssl_certificate cert.pem; ssl_certificate_key none.key;", "server_name;", "server_name ~(;", "server_name ~;", "server_name *a;", "server_name a.*.b;", "server_name a*;", "server_name *.;", "server_name ..;", "server_name \"\";", "server_name _;", "server_name a/b;", "server_name A.B;",
             "location {}", "location / {} location / {}", "location = /a {} location = /a {}", "location ~ ( {}", "location ~ ^/a{2}$ {}", "location ~ a {} location ~ a {}", "location /a { location /b {} }", "location @a { location @b {} }", "location = /a { location /a/b {} }", "location @a {} location @a {}", "location ^~ /a {} location /a {}", "location == /a {}", "location / / / {}", "location ~* [ {}", "location a {}", "location ~a {}", "location =/a { return 200 x; }", "location ^~/a {}", "location @ {}",
             "return;", "return 99999 x;", "return 200 a b;", "return x;", "return 301;", "return foo;", "return /x;", "return 200 $nothing;", "return http://x y;", "return 1000;", "try_files $uri;", "try_files $uri =abc;", "try_files /a /b =9999;", "rewrite ^/a( /b;", "if ($a) { }", "proxy_pass http://nohost.invalid;", "error_page 404 $nothing;", "root $nothing;", "root /a/$document_root;", "alias x;", "merge_slashes maybe;", "server_name a; server_name b;", "index a; index b;", "http2 on; http2 off;", "underscores_in_headers;", "large_client_header_buffers 4 x;", "charset utf-8; charset latin1;", "add_header X $nothing;", "access_log @LOGS@/$nothing;", "ssl_certificate_key cert.key;", "listen 127.0.0.1:@P1@ proxy_protocol=1;"):
    server(text)
for text in ("root a; alias b;", "alias b; root a;", "alias a; alias b;", "alias;", "internal on;", "internal; internal;", "listen 80;", "server_name a;", "try_files a; ", "try_files a b; try_files c d;", "expires 1h; expires 2h;", "etag x;", "gzip_static maybe;", "limit_rate_after x;", "return 301 /x; return 302 /y;", "frobnicate;", "Root x;", "root \"a;", "root a;;", "root a;}", "root 'a'b;", "root a#b;", "root ${x;", "root $;", "root a$;", "location /x", "return 200 \"${uri\";", "return 200 \"a$\";", "default_type a b;"):
    location(text)
for text in ("upstream a { }", "upstream a b { server unix:/s; }", "upstream a { server; }", "upstream a { server unix:/s; } upstream A { server unix:/s; }", "upstream a { server unix:/s backup; }", "upstream a { server unix:; }", "upstream a { server 127.0.0.1:x; }", "upstream a { server 127.0.0.1:0; }", "upstream a { server nohost.invalid:80; }", "upstream a { server nohost.invalid; }",
             "upstream a { server http://a; }", "upstream a { server [::x]:9; }", "upstream a { server unix:/s weight=0; }", "upstream a { server unix:/s max_fails=x; }", "upstream a { server unix:/s fail_timeout=1ms; }", "upstream a { server unix:/s max_conns=-1; }", "upstream a { server unix:/s slow_start=1; }", "upstream a { server unix:/s other; }", "upstream a { ip_hash; server unix:/s; server unix:/t backup; }",
             "upstream a { least_conn; ip_hash; server unix:/s; }", "upstream a { hash; server unix:/s; }", "upstream a { hash $uri often; server unix:/s; }", "upstream a { hash $nothing; server unix:/s; }", "upstream a { random one; server unix:/s; }", "upstream a { keepalive x; server unix:/s; }", "upstream a { keepalive 1 x; server unix:/s; }", "upstream a { keepalive 1; keepalive 2; server unix:/s; }", "upstream a { keepalive_timeout x; server unix:/s; }", "upstream a { keepalive_requests x; server unix:/s; }",
             "upstream a { zone a; server unix:/s; }", "upstream a { zone a 1k; server unix:/s; }", "upstream a { zone a x; server unix:/s; }", "upstream a { zone a 64k; server unix:/s; } upstream b { zone a 65k; server unix:/s; }", "upstream a { root x; server unix:/s; }", "upstream a { server unix:/s; } server { location / { fastcgi_pass a:80; } }", "server { location / { fastcgi_pass a:80; } } upstream a { server unix:/s; }", "upstream a { server unix:/s; } server { location / { fastcgi_pass A; } }",
             "least_conn;", "fastcgi_param A $nothing;", "fastcgi_pass unix:/s;", "server { fastcgi_pass unix:/s; }", "fastcgi_buffers 2 4k; server { }", "server { fastcgi_busy_buffers_size 1k; }", "fastcgi_buffer_size 64k;", "server { location / { fastcgi_busy_buffers_size 1k; } location /a { fastcgi_pass b; } }"):
    http(text)
for text in ("fastcgi_pass;", "fastcgi_pass unix:/s; fastcgi_pass unix:/s;", "fastcgi_pass nohost.invalid:9;", "fastcgi_pass nohost;", "fastcgi_pass 127.0.0.1;", "fastcgi_pass 127.0.0.1:x;", "fastcgi_pass unix:;", "fastcgi_pass \"\";", "fastcgi_pass http://a:9;", "fastcgi_pass $nothing;", "fastcgi_pass $host;", "fastcgi_pass [::1]:9;", "fastcgi_pass unix:/s; return 204;", "fastcgi_param A;", "fastcgi_param A b c;", "fastcgi_param A $nothing; fastcgi_pass unix:/s;", "fastcgi_index a; fastcgi_index b;",
             "fastcgi_split_path_info ^(a)$;", "fastcgi_split_path_info (;", "fastcgi_split_path_info ^(a)(b);", "fastcgi_buffers 1 4k;", "fastcgi_buffers 0 4k;", "fastcgi_buffers 2 x;", "fastcgi_buffers 2 4k;", "fastcgi_buffer_size x;", "fastcgi_busy_buffers_size 1k;", "fastcgi_busy_buffers_size 29k;", "fastcgi_temp_file_write_size 1k;", "fastcgi_max_temp_file_size 1k;", "fastcgi_max_temp_file_size 1g;", "fastcgi_temp_path a 0;", "fastcgi_temp_path a 9 9;", "client_body_temp_path a x;", "fastcgi_read_timeout x;", "fastcgi_read_timeout 1; fastcgi_read_timeout 2;",
             "fastcgi_next_upstream never;", "fastcgi_next_upstream error error;", "fastcgi_next_upstream_tries x;", "fastcgi_ignore_headers X-Other;", "fastcgi_ignore_headers Vary Vary;", "fastcgi_hide_header;", "fastcgi_pass_header a b;", "fastcgi_catch_stderr;", "fastcgi_limit_rate x;", "fastcgi_keep_conn maybe;", "fastcgi_intercept_errors maybe;", "fastcgi_send_lowat 1;", "fastcgi_send_lowat x;", "return 200 $fastcgi_script_name$fastcgi_path_info$request_body$upstream_addr$upstream_http_a$proxy_host;", "server unix:/s;"):
    location(text)

start("port in use", HEAD + "http { server { listen 127.0.0.1:@P9@; } }\n")
start("port in use twice", HEAD + "http { server { listen 127.0.0.1:@P9@; listen 127.0.0.1:@P9@; } }\n")
start("address of nobody", HEAD + "http { server { listen 192.0.2.1:@P1@; } }\n")
start("pid directory missing", "pid @DIR@/none/pid; error_log @LOGS@/start.log; events {} http { server { listen 127.0.0.1:@P1@; } }\n")
start("log directory missing", HEAD + "http { access_log @DIR@/none/a.log; server { listen 127.0.0.1:@P1@; } }\n")
start("unknown user", "user nobodyknows; " + HEAD + "http { server { listen 127.0.0.1:@P1@; } }\n")
start("certificate missing", HEAD + "http { server { listen 127.0.0.1:@P1@ ssl; ssl_certificate none.pem; ssl_certificate_key none.key; } }\n")
start("unknown directive", HEAD + "http { server { lisen 80; } }\n")
start("configuration with a warning and a port in use", HEAD + "http { server { listen 127.0.0.1:@P9@; server_name a a; } }\n")
for text in ("source_charset koi8-r; charset utf-8; server { listen 127.0.0.1:@P0@; }", "source_charset koi8-r; server { listen 127.0.0.1:@P0@; location / { charset windows-1251; } }", "source_charset utf-8; server { listen 127.0.0.1:@P0@; location /a { charset UTF-8; } location /v { charset $arg_c; } location /o { charset off; } }",
             "server { listen 127.0.0.1:@P0@; charset utf-8; location / { if ($args) { source_charset koi8-r; } } }", "server { listen 127.0.0.1:@P0@; charset koi8-r; source_charset $arg_s; }"):
    http(text)
