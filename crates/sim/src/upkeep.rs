//! Work of a server beside its responses: logs of every kind, bodies in files that applications
//! open, passwords that take long to check, requests that a reload leaves running.

/// Seconds that a reload leaves to requests.
const OVERTIME_SECONDS: u64 = 1;
/// The same in nanoseconds.
pub const OVERTIME: u64 = OVERTIME_SECONDS * 1_000_000_000;
/// Directives beside the blocks.
pub const MAIN: &str = "worker_shutdown_timeout 1s;";

/// Directives of the `http` block.
pub const HTTP: &str = "
    log_format tokens '$http_x_ask $status $request_time $msec';
    open_log_file_cache max=2 inactive=3s valid=1s min_uses=1;
    client_body_temp_path /bodies 1 2;";

/// What is served.
pub const LOCATIONS: &str = "        access_log /logs/log sim;
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

/// Who may come in: alice, by `secret`.
pub const PASSWORDS: &[u8] =
    b"alice:$5$rounds=1000$abcdefgh$XIppta5rT8zJUu4vAOKQXrwq9uY4Ijlz6VjyOmkx5i4\n";

/// `alice:secret`, and what is not right.
pub const CREDENTIALS: [&str; 3] =
    ["Basic YWxpY2U6c2VjcmV0", "Basic YWxpY2U6d3Jvbmc=", "Basic Ym9iOnNlY3JldA=="];

/// Files of an earlier process where bodies are kept.
pub const LEFT: [&str; 2] = ["/bodies/1/00/0000000001", "/bodies/2/00/0000000002"];
