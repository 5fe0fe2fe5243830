# Vinyl for plain HTTP, and hitch for TLS in front of it.
"$1" -F -a 127.0.0.1:8080 -a 127.0.0.1:8082,PROXY -p feature=+http2 -p thread_pools=1 \
    -p thread_pool_min=50 -p listen_depth=4096 -f @DIR@/page.vcl -s malloc,256m \
    -n @DIR@/run/vinyl &
exec "$2" --workers=1 --backend='[127.0.0.1]:8082' --write-proxy-v2 --alpn-protos=h2,http/1.1 \
    --frontend='[127.0.0.1]:8443' --user="$(id -un)" --quiet @DIR@/both.pem
