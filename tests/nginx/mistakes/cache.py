"""Owns: mistakes and oddities in directives about caches."""

from ..mistake import http, location, main

for text in (
    "fastcgi_cache_path;",
    "fastcgi_cache_path @DIR@/c;",
    "fastcgi_cache_path @DIR@/c levels=1:2;",
    "fastcgi_cache_path @DIR@/c keys_zone=a:1m;",
    "fastcgi_cache_path c keys_zone=a:1m;",
    "fastcgi_cache_path c/ keys_zone=a:1m;",
    "fastcgi_cache_path c keys_zone=a;",
    "fastcgi_cache_path c keys_zone=a:;",
    "fastcgi_cache_path c keys_zone=:1m;",
    "fastcgi_cache_path c keys_zone=a:1k;",
    "fastcgi_cache_path c keys_zone=a:8191;",
    "fastcgi_cache_path c keys_zone=a:32k;",
    "fastcgi_cache_path c keys_zone=a:x;",
    "fastcgi_cache_path c keys_zone=a:1g;",
    "fastcgi_cache_path c keys_zone=a:0;",
    "fastcgi_cache_path c keys_zone=a:b:1m;",
    "fastcgi_cache_path c keys_zone=a:1m keys_zone=b:1m;",
    "fastcgi_cache_path c keys_zone=a:1m x;",
    "fastcgi_cache_path c keys_zone=a:1m levels=1;",
    "fastcgi_cache_path c keys_zone=a:1m levels=1:1:1;",
    "fastcgi_cache_path c keys_zone=a:1m levels=2:2:2;",
    "fastcgi_cache_path c keys_zone=a:1m levels=1:2:1:1;",
    "fastcgi_cache_path c keys_zone=a:1m levels=3;",
    "fastcgi_cache_path c keys_zone=a:1m levels=0;",
    "fastcgi_cache_path c keys_zone=a:1m levels=;",
    "fastcgi_cache_path c keys_zone=a:1m levels=1:;",
    "fastcgi_cache_path c keys_zone=a:1m levels=12;",
    "fastcgi_cache_path c keys_zone=a:1m levels=x;",
    "fastcgi_cache_path c keys_zone=a:1m levels=:1;",
    "fastcgi_cache_path c keys_zone=a:1m levels=1:2:3;",
    "fastcgi_cache_path c keys_zone=a:1m levels=1-2;",
    "fastcgi_cache_path c keys_zone=a:1m inactive=60m;",
    "fastcgi_cache_path c keys_zone=a:1m inactive=;",
    "fastcgi_cache_path c keys_zone=a:1m inactive=x;",
    "fastcgi_cache_path c keys_zone=a:1m inactive=1ms;",
    "fastcgi_cache_path c keys_zone=a:1m inactive=1y;",
    "fastcgi_cache_path c keys_zone=a:1m max_size=1g;",
    "fastcgi_cache_path c keys_zone=a:1m max_size=;",
    "fastcgi_cache_path c keys_zone=a:1m max_size=x;",
    "fastcgi_cache_path c keys_zone=a:1m max_size=0;",
    "fastcgi_cache_path c keys_zone=a:1m min_free=100m;",
    "fastcgi_cache_path c keys_zone=a:1m min_free=x;",
    "fastcgi_cache_path c keys_zone=a:1m use_temp_path=on;",
    "fastcgi_cache_path c keys_zone=a:1m use_temp_path=off;",
    "fastcgi_cache_path c keys_zone=a:1m use_temp_path=x;",
    "fastcgi_cache_path c keys_zone=a:1m use_temp_path=ON;",
    "fastcgi_cache_path c keys_zone=a:1m loader_files=10 loader_sleep=5ms loader_threshold=5ms;",
    "fastcgi_cache_path c keys_zone=a:1m loader_files=x;",
    "fastcgi_cache_path c keys_zone=a:1m loader_files=0;",
    "fastcgi_cache_path c keys_zone=a:1m loader_sleep=x;",
    "fastcgi_cache_path c keys_zone=a:1m loader_threshold=x;",
    "fastcgi_cache_path c keys_zone=a:1m manager_files=10 manager_sleep=5ms manager_threshold=5ms;",
    "fastcgi_cache_path c keys_zone=a:1m manager_files=x;",
    "fastcgi_cache_path c keys_zone=a:1m manager_sleep=x;",
    "fastcgi_cache_path c keys_zone=a:1m manager_threshold=x;",
    "fastcgi_cache_path c keys_zone=a:1m purger=on;",
    "fastcgi_cache_path c keys_zone=a:1m purger=off;",
    "fastcgi_cache_path c keys_zone=a:1m purger_files=10;",
    "fastcgi_cache_path c keys_zone=a:1m; fastcgi_cache_path c keys_zone=b:1m;",
    "fastcgi_cache_path c keys_zone=a:1m; fastcgi_cache_path c keys_zone=a:1m;",
    "fastcgi_cache_path c keys_zone=a:1m;\nfastcgi_cache_path d keys_zone=a:1m;",
    "fastcgi_cache_path c keys_zone=a:1m;\nfastcgi_cache_path d keys_zone=a:2m;",
    (
        "fastcgi_cache_path c keys_zone=a:1m levels=1;\n"
        "server { listen 127.0.0.1:@P0@; location / { fastcgi_temp_path c 1; "
        "fastcgi_pass unix:/x; } }"
    ),
    (
        "fastcgi_cache_path c keys_zone=a:1m levels=1;\n"
        "server { listen 127.0.0.1:@P0@; location / { fastcgi_temp_path c 2; "
        "fastcgi_pass unix:/x; } }"
    ),
    (
        "fastcgi_cache_path c keys_zone=a:1m;\n"
        "server { listen 127.0.0.1:@P0@; location / { client_body_temp_path c; "
        "fastcgi_pass unix:/x; } }"
    ),
    "fastcgi_cache_path $uri keys_zone=a:1m;",
    "fastcgi_cache a;",
    "fastcgi_cache a; fastcgi_cache_path c keys_zone=a:1m;",
    "fastcgi_cache_path c keys_zone=a:1m; fastcgi_cache a;",
    "fastcgi_cache_path c keys_zone=a:1m; fastcgi_cache a; server { listen 127.0.0.1:@P0@; }",
    (
        "fastcgi_cache_path c keys_zone=a:1m; fastcgi_cache a; fastcgi_cache_key k; server { "
        "listen 127.0.0.1:@P0@; }"
    ),
    (
        "fastcgi_cache_path c keys_zone=a:1m; fastcgi_cache a;\nserver { listen 127.0.0.1:@P0@;\n"
        "location / {\nfastcgi_pass unix:/x;\n}\n}"
    ),
    (
        "fastcgi_cache_path c keys_zone=a:1m;\nserver { listen 127.0.0.1:@P0@;\nlocation / {\n"
        "fastcgi_cache a;\nfastcgi_pass unix:/x;\n}\n}"
    ),
    (
        "fastcgi_cache_path c keys_zone=a:1m;\nserver { listen 127.0.0.1:@P0@;\nlocation / {\n"
        "fastcgi_cache a;\n}\n}"
    ),
    (
        "fastcgi_cache_path c keys_zone=a:1m;\nserver { listen 127.0.0.1:@P0@;\nlocation / {\n"
        "fastcgi_cache $uri;\n}\n}"
    ),
    (
        "fastcgi_cache_path c keys_zone=a:1m;\nserver { listen 127.0.0.1:@P0@;\nlocation / {\n"
        "fastcgi_cache_key $uri;\nfastcgi_cache $host;\n}\n}"
    ),
    "fastcgi_cache b; fastcgi_cache_path c keys_zone=a:1m; server { listen 127.0.0.1:@P0@; }",
    (
        "server { listen 127.0.0.1:@P0@; location / { fastcgi_cache b; fastcgi_cache_key x; "
        "fastcgi_pass unix:/x; } }"
    ),
    (
        "fastcgi_cache_path c keys_zone=a:1m;\n"
        "server { listen 127.0.0.1:@P0@; location / { fastcgi_cache A; fastcgi_cache_key x; } }"
    ),
    (
        "server { listen 127.0.0.1:@P0@; location / { fastcgi_cache b; } }\n"
        "server { listen 127.0.0.1:@P0@; location / { fastcgi_buffers 1 4k; } }"
    ),
    "server { listen 127.0.0.1:@P0@; location / { fastcgi_buffers 1 4k; fastcgi_cache b; } }",
    (
        "fastcgi_cache_path c keys_zone=a:1m;\nserver { listen 127.0.0.1:@P0@;\n"
        'fastcgi_cache a;\nfastcgi_cache_key $uri;\nlocation / { fastcgi_cache_key ""; }\n}'
    ),
    (
        "fastcgi_cache_path c keys_zone=a:1m;\nserver { listen 127.0.0.1:@P0@;\n"
        "fastcgi_cache a;\nlocation / { fastcgi_cache off; }\n}"
    ),
    "upstream a { zone a 64k; server unix:/x; } fastcgi_cache_path c keys_zone=a:1m;",
    "upstream a { zone a 1m; server unix:/x; } fastcgi_cache_path c keys_zone=a:1m;",
    (
        "upstream a { zone z 64k; server unix:/x; } server { listen 127.0.0.1:@P0@; location / { "
        "fastcgi_cache z; fastcgi_cache_key k; } }"
    ),
    (
        "upstream a { zone z 64k; server unix:/x; } server { listen 127.0.0.1:@P0@; location / { "
        "fastcgi_cache_key k; fastcgi_cache z; fastcgi_pass a; } }"
    ),
    "fastcgi_cache_path c keys_zone=a:1m { }",
    (
        "fastcgi_cache_path c levels=1:2 keys_zone=WORDPRESS:100m inactive=60m; "
        'fastcgi_cache_key "$scheme$request_method$host$request_uri"; '
        "fastcgi_cache_use_stale error timeout invalid_header http_500;\n"
        "server { listen 127.0.0.1:@P0@; location / { fastcgi_cache_bypass $arg_x; "
        "fastcgi_no_cache $arg_x; fastcgi_cache WORDPRESS; fastcgi_cache_valid 60m; "
        "fastcgi_pass unix:/x; add_header X-Cache $upstream_cache_status; } }"
    ),
    (
        "fastcgi_cache_path one keys_zone=a:1m levels=1:2;\n"
        "fastcgi_cache_path one keys_zone=b:1m levels=1:2;"
    ),
    (
        "fastcgi_cache_path one keys_zone=a:1m levels=1:2;\n"
        "fastcgi_cache_path one keys_zone=b:1m levels=2:1;"
    ),
    "fastcgi_cache_path one keys_zone=a:1m inactive=9999999999999999999999;",
    "fastcgi_cache_path ccc/ keys_zone=a:1m; fastcgi_cache_path ccc keys_zone=b:1m;",
    "fastcgi_cache_path one levels=3 keys_zone=a;",
    "fastcgi_cache_path one keys_zone=a;",
    "fastcgi_cache_path one purger_sleep=1ms keys_zone=a:1m;",
    "fastcgi_cache_path one purger=x keys_zone=a:1m;",
    "fastcgi_cache_path one KEYS_ZONE=a:1m;",
    (
        "fastcgi_cache_path c keys_zone=a:1m;\n"
        "server { listen 127.0.0.1:@P0@; location / { fastcgi_temp_path c 1; } location /b { "
        "fastcgi_temp_path d 1; } location /c { fastcgi_temp_path d 2; } }"
    ),
    (
        "server { listen 127.0.0.1:@P0@; location /b { fastcgi_temp_path d 1; }\n"
        "location /c { client_body_temp_path d 2; } }"
    ),
    (
        "server { listen 127.0.0.1:@P0@; location /b { fastcgi_temp_path d 1; }\n"
        "location /c { client_body_temp_path d 1; } }"
    ),
    (
        "server { listen 127.0.0.1:@P0@; location /b { fastcgi_temp_path d 1; }\n"
        "location /c { fastcgi_temp_path d 1;\n} }\nfastcgi_cache_path d levels=1 keys_zone=a:1m;"
    ),
    (
        "fastcgi_cache_path d levels=1 keys_zone=a:1m;\n"
        "server { listen 127.0.0.1:@P0@; location /b { fastcgi_temp_path d 1; }\n"
        "location /c { fastcgi_temp_path x 1;\n} }\nfoo;"
    ),
    "fastcgi_cache_path fastcgi_temp levels=1 keys_zone=a:1m;\nserver { listen 127.0.0.1:@P0@; }",
    (
        "fastcgi_cache_path c keys_zone=a:1m; fastcgi_cache a;\n"
        "server { listen 127.0.0.1:@P0@; location / { location /a {\n}\nlocation /b {\n}\n}\n"
        "location /c {\n}\n}\nserver { listen 127.0.0.1:@P0@;\nlocation /a {\n}\n}"
    ),
    (
        "fastcgi_cache_path c keys_zone=a:1m; fastcgi_cache a;\n"
        "server { listen 127.0.0.1:@P0@; location / { if ($uri) {\n}\n}\n}"
    ),
    "fastcgi_cache a;\nserver { listen 127.0.0.1:@P0@; location / { fastcgi_buffers 1 4k; } }",
    (
        "server { listen 127.0.0.1:@P0@; fastcgi_cache a; }\n"
        "server { listen 127.0.0.1:@P0@; location / { fastcgi_buffers 1 4k; } }"
    ),
    "upstream a { zone b; server unix:/x; } fastcgi_cache_path c keys_zone=b:1m;",
    "fastcgi_cache_path c keys_zone=b:1m; upstream a { zone b; server unix:/x; } ",
    "fastcgi_cache_path c keys_zone=b:1m;\nupstream a { zone b 1m; server unix:/x; } ",
    "fastcgi_cache_path c keys_zone=b:1m;\nupstream a { zone b 2m; server unix:/x; } ",
    "fastcgi_cache b; upstream a { zone b 2m; server unix:/x; } ",
    "fastcgi_cache b;\nserver { listen 127.0.0.1:@P0@; fastcgi_cache c; }",
    "fastcgi_cache_path c keys_zone=b:16k;",
    "fastcgi_cache_path c keys_zone=b:12k;",
    "fastcgi_cache_path c keys_zone=b:20k;",
    "fastcgi_cache OFF; server { listen 127.0.0.1:@P0@; }",
    "fastcgi_cache_path c keys_zone=a:1m use_temp_path=off use_temp_path=on;",
    "fastcgi_cache_path c keys_zone=a:1m manager_sleep=1y;",
    "fastcgi_cache_path c keys_zone=a:1m manager_sleep=5000;",
    "fastcgi_cache_path c keys_zone=a:1m max_size=-1;",
    (
        "server { listen 127.0.0.1:@P0@; location / { fastcgi_temp_path tt; } } "
        "fastcgi_cache_path tt keys_zone=a:1m;"
    ),
):
    http(text)
for text in (
    "fastcgi_cache_path c keys_zone=a:1m;",
    "fastcgi_cache;",
    "fastcgi_cache a b;",
    "fastcgi_cache off;",
    'fastcgi_cache "";',
    "fastcgi_cache off; fastcgi_cache off;",
    "fastcgi_cache a; fastcgi_cache b;",
    "fastcgi_cache a; fastcgi_cache off;",
    "fastcgi_cache off; fastcgi_cache a;",
    "fastcgi_cache_key;",
    "fastcgi_cache_key a b;",
    "fastcgi_cache_key a;",
    'fastcgi_cache_key "$scheme$request_method$host$request_uri";',
    "fastcgi_cache_key $nothing;",
    "fastcgi_cache_key a; fastcgi_cache_key b;",
    'fastcgi_cache_key "";',
    "fastcgi_cache_valid;",
    "fastcgi_cache_valid 10m;",
    "fastcgi_cache_valid 200 10m;",
    "fastcgi_cache_valid any 1m;",
    "fastcgi_cache_valid ANY 1m;",
    "fastcgi_cache_valid 200 301 302 1h;",
    "fastcgi_cache_valid 200;",
    "fastcgi_cache_valid 200 x;",
    "fastcgi_cache_valid x;",
    "fastcgi_cache_valid x 1m;",
    "fastcgi_cache_valid 99 1m;",
    "fastcgi_cache_valid 100 1m;",
    "fastcgi_cache_valid 599 1m;",
    "fastcgi_cache_valid 600 1m;",
    "fastcgi_cache_valid 1000 1m;",
    "fastcgi_cache_valid 0 1m;",
    "fastcgi_cache_valid 200 1ms;",
    "fastcgi_cache_valid 200 0;",
    "fastcgi_cache_valid 200 1m; fastcgi_cache_valid 200 2m;",
    "fastcgi_cache_valid 200 1y;",
    "fastcgi_cache_valid 200 -1;",
    "fastcgi_cache_valid any;",
    "fastcgi_cache_valid 200 any 1m;",
    "fastcgi_cache_methods;",
    "fastcgi_cache_methods GET;",
    "fastcgi_cache_methods POST;",
    "fastcgi_cache_methods get head post;",
    "fastcgi_cache_methods PUT;",
    "fastcgi_cache_methods GET GET;",
    "fastcgi_cache_methods GET; fastcgi_cache_methods POST;",
    "fastcgi_cache_methods POST; fastcgi_cache_methods POST;",
    "fastcgi_cache_min_uses 3;",
    "fastcgi_cache_min_uses 0;",
    "fastcgi_cache_min_uses x;",
    "fastcgi_cache_min_uses -1;",
    "fastcgi_cache_min_uses;",
    "fastcgi_cache_min_uses 1; fastcgi_cache_min_uses 1;",
    "fastcgi_cache_bypass;",
    "fastcgi_cache_bypass $cookie_a $arg_b;",
    "fastcgi_cache_bypass 1;",
    'fastcgi_cache_bypass "";',
    "fastcgi_cache_bypass $nothing;",
    "fastcgi_cache_bypass $arg_a; fastcgi_cache_bypass $arg_b;",
    "fastcgi_no_cache;",
    "fastcgi_no_cache $cookie_a $arg_b;",
    "fastcgi_no_cache $nothing;",
    "fastcgi_no_cache $arg_a; fastcgi_no_cache $arg_b;",
    "fastcgi_no_cache $arg_a;",
    "fastcgi_cache_bypass $arg_a;",
    "fastcgi_cache_lock on;",
    "fastcgi_cache_lock x;",
    "fastcgi_cache_lock on; fastcgi_cache_lock on;",
    "fastcgi_cache_lock_age 5s;",
    "fastcgi_cache_lock_age x;",
    "fastcgi_cache_lock_timeout 5s;",
    "fastcgi_cache_lock_timeout 500ms;",
    "fastcgi_cache_lock_timeout x;",
    "fastcgi_cache_use_stale;",
    (
        "fastcgi_cache_use_stale error timeout invalid_header updating http_500 http_503 "
        "http_403 http_404 http_429;"
    ),
    "fastcgi_cache_use_stale off;",
    "fastcgi_cache_use_stale error off;",
    "fastcgi_cache_use_stale http_502;",
    "fastcgi_cache_use_stale http_504;",
    "fastcgi_cache_use_stale x;",
    "fastcgi_cache_use_stale ERROR;",
    "fastcgi_cache_use_stale error error;",
    "fastcgi_cache_use_stale error; fastcgi_cache_use_stale timeout;",
    "fastcgi_cache_use_stale non_idempotent;",
    "fastcgi_cache_background_update on;",
    "fastcgi_cache_background_update x;",
    "fastcgi_cache_revalidate on;",
    "fastcgi_cache_revalidate x;",
    "fastcgi_cache_max_range_offset 1m;",
    "fastcgi_cache_max_range_offset 1g;",
    "fastcgi_cache_max_range_offset x;",
    "fastcgi_cache_convert_head on;",
    "if ($uri) { fastcgi_cache off; }",
    "if ($uri) { fastcgi_no_cache 1; }",
    'fastcgi_cache "off$arg_a";',
    "fastcgi_cache OFF;",
    "fastcgi_cache_use_stale error; fastcgi_cache_use_stale error;",
    "fastcgi_cache_valid 099 1m;",
    "fastcgi_cache_valid '200 301' 1m;",
):
    location(text)
for text in ("fastcgi_cache off;", "fastcgi_cache_path c keys_zone=a:1m;"):
    main(text)
