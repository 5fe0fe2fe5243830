"""Owns: directives that change nothing a client could see: a server with all of them answers."""

from ..site import http

HTTP = """
    variables_hash_max_size 2048; variables_hash_bucket_size 128; map_hash_max_size 512;
    map_hash_bucket_size 128; server_names_hash_max_size 1024; server_names_hash_bucket_size 128;
    http2_pool_size 8k; http2_streams_index_size 64; http2_max_concurrent_pushes 5; http2_push off;
    http2_body_preread_size 32k; send_lowat 0; early_hints $http_e;
    connection_pool_size 512; request_pool_size 8k; merge_slashes on; resolver 127.0.0.1:1;
proxy_temp_path @LOGS@/answers 1 2;
fastcgi_temp_path @LOGS@/scripts 1;
uwsgi_temp_path @LOGS@/uwsgi;
scgi_temp_path @LOGS@/scgi;
    map $uri $m { default d; /hello.txt h; }
    upstream one { server @ORIGIN@; random; }
    server {
        listen 127.0.0.1:@P0@; server_name one; root @DIR@/www; add_header M $m;
        location /o { proxy_pass http://one; }
        location /t {
            proxy_temp_path @LOGS@/other; proxy_pass http://one; resolver 127.0.0.1:2;
        }
    }
    server {
        listen 127.0.0.1:@P0@; server_name two; root @DIR@/www; merge_slashes off;
        connection_pool_size 256; request_pool_size 4k; http2_body_preread_size 64k;
        http2_pool_size 4k; http2_streams_index_size 32; http2_push on;
    }
"""
http(
    "harmless words",
    HTTP,
    [
        "GET /hello.txt",
        "GET /o",
        "GET /t",
        "GET //hello.txt",
        "GET //hello.txt | Host: two",
        "GET /none",
        "POST /o | Content-Length: 0",
    ],
    open=True,
    alone=False,
)
