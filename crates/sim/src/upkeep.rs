//! The site of the scenario `upkeep`: logs of every kind, request bodies in files that applications
//! open, passwords that take long to check, and a short `worker_shutdown_timeout`.

/// `worker_shutdown_timeout` in seconds.
const SHUTDOWN_TIMEOUT_SECONDS: u64 = 1;
/// `worker_shutdown_timeout` in nanoseconds.
pub const SHUTDOWN_TIMEOUT: u64 = SHUTDOWN_TIMEOUT_SECONDS * 1_000_000_000;
/// Directives of the main context.
pub const MAIN: &str = "worker_shutdown_timeout 1s;";

/// Directives of the `http` block. A line has the time at which the head was complete: it decides
/// which configuration a request has.
pub const HTTP: &str = "
    log_format tokens '$http_x_ask $status $complete $msec';
    open_log_file_cache max=2 inactive=3s valid=1s min_uses=1;
    client_body_temp_path /bodies 1 2;";

/// The locations of the site.
pub const LOCATIONS: &str = "        set $complete $msec;
        access_log /logs/log sim;
        access_log /logs/plain tokens;
        access_log /logs/packed tokens gzip=1 buffer=2k flush=700ms;
        access_log /logs/pipe tokens;
        access_log /logs/own-$http_x_client tokens;
        access_log syslog:server=192.0.2.5:514,tag=sim,nohostname tokens;
        location /filed { client_body_in_file_only clean; fastcgi_pass app;
            fastcgi_param QUERY_STRING $query_string; fastcgi_param REQUEST_METHOD $request_method;
            fastcgi_param BODY_FILE $request_body_file; }
        location /listed/ { alias /www/; index none; autoindex on;
            add_header X-Facts $realpath_root:$tcpinfo_rtt; }
        location /guarded/ { alias /www/; auth_basic here; auth_basic_user_file /www/htpasswd; }
";

/// The password file: user `alice`, password `secret`.
pub const PASSWORDS: &[u8] =
    b"alice:$5$rounds=1000$abcdefgh$XIppta5rT8zJUu4vAOKQXrwq9uY4Ijlz6VjyOmkx5i4\n";

/// The right credentials and two wrong ones.
pub const CREDENTIALS: [&str; 3] =
    ["Basic YWxpY2U6c2VjcmV0", "Basic YWxpY2U6d3Jvbmc=", "Basic Ym9iOnNlY3JldA=="];

/// Files that another process left in the directory for request bodies.
pub const LEFT: [&str; 2] = ["/bodies/1/00/0000000001", "/bodies/2/00/0000000002"];
