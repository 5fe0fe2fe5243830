# Vinyl in front of the origin on port 8081, which compresses.
vcl 4.1;
backend default { .host = "127.0.0.1"; .port = "8081"; }
sub vcl_backend_response { set beresp.ttl = 1h; }
