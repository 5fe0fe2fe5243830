"""Owns: mistakes and oddities in directives about logs."""
from .mistakes import HEAD, http, location, main, server, whole

for text in (
    "access_log;", "access_log off off;", "access_log off combined;", "access_log off; access_log @LOGS@/a;", "access_log @LOGS@/a; access_log off;",
    "access_log off; access_log off;", "access_log @LOGS@/a nope;", "access_log @LOGS@/a nope buffer=x;", "access_log @LOGS@/a combined x;",
    "access_log @LOGS@/a combined buffer=;", "access_log @LOGS@/a combined buffer=0;", "access_log @LOGS@/a combined buffer=1;",
    "access_log @LOGS@/a combined buffer=32k flush=;", "access_log @LOGS@/a combined buffer=32k flush=0;",
    "access_log @LOGS@/a combined buffer=32k flush=1x;", "access_log @LOGS@/a combined flush=5m;", "access_log @LOGS@/a combined gzip flush=5m;",
    "access_log @LOGS@/a combined gzip=0;", "access_log @LOGS@/a combined gzip=;", "access_log @LOGS@/a combined gzip=x;",
    "access_log @LOGS@/a combined gzip=9;", "access_log @LOGS@/a combined gzipx;", "access_log @LOGS@/a combined gzip=5 buffer=1k;",
    "access_log @LOGS@/a combined if;", "access_log @LOGS@/a combined if=;", "access_log @LOGS@/a combined if=$nope;",
    "access_log @LOGS@/a combined if=$a$uri if=$uri;", "access_log @LOGS@/$uri;", "access_log @LOGS@/$uri combined buffer=1k;",
    "access_log @LOGS@/$uri combined gzip;", "access_log @LOGS@/$nope;", "access_log @LOGS@/$;", "access_log @LOGS@/a${b;", "access_log syslog:;",
    "access_log syslog:server;", "access_log syslog:server=;", "access_log syslog:server=127.0.0.1;", "access_log syslog:server=127.0.0.1:x;",
    "access_log syslog:server=127.0.0.1:99999;", "access_log syslog:server=127.0.0.1:0;", "access_log syslog:server=[::1]:514;",
    "access_log syslog:server=[::1;", "access_log syslog:server=nohost.invalid;", "access_log syslog:server=unix:;",
    "access_log syslog:server=unix:@LOGS@/x.sock;", "access_log syslog:server=unix:rel.sock;", "access_log syslog:server=localhost;",
    "access_log syslog:server=127.0.0.1,server=127.0.0.1;", "access_log syslog:server=127.0.0.1,facility=user,facility=user;",
    "access_log syslog:server=127.0.0.1,facility=nope;", "access_log syslog:server=127.0.0.1,facility=;",
    "access_log syslog:server=127.0.0.1,severity=error,severity=error;", "access_log syslog:server=127.0.0.1,severity=nope;",
    "access_log syslog:server=127.0.0.1,severity=err;", "access_log syslog:server=127.0.0.1,severity=warning;",
    "access_log syslog:server=127.0.0.1,severity=crit;", "access_log syslog:server=127.0.0.1,tag=a,tag=b;", "access_log syslog:server=127.0.0.1,tag=;",
    "access_log syslog:server=127.0.0.1,tag=a-b;", "access_log syslog:server=127.0.0.1,tag=a_B9;",
    "access_log syslog:server=127.0.0.1,tag=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa;",
    "access_log syslog:server=127.0.0.1,tag=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa;",
    "access_log syslog:server=127.0.0.1,tag=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa;", "access_log syslog:server=127.0.0.1,nohostname;",
    "access_log syslog:server=127.0.0.1,nohostname,nohostname;", "access_log syslog:server=127.0.0.1,nohostname=1;",
    "access_log syslog:server=127.0.0.1,x=1;", "access_log syslog:server=127.0.0.1,;", "access_log syslog:server=127.0.0.1,,;",
    "access_log syslog:,server=127.0.0.1;", "access_log syslog:facility=user;", "access_log syslog:tag=a;",
    "access_log syslog:server=127.0.0.1 combined buffer=1k;", "access_log syslog:server=127.0.0.1 combined flush=1s;",
    "access_log syslog:server=127.0.0.1 combined gzip;", "access_log syslog:server=127.0.0.1 combined if=$uri;",
    "access_log syslog:server=127.0.0.1 nope;", "access_log syslog:server=$host;", "access_log syslog:server=http://127.0.0.1/;",
    "access_log @LOGS@/a combined buffer=1k; access_log @LOGS@/a combined buffer=2k;",
    "access_log @LOGS@/a combined buffer=1k; access_log @LOGS@/a combined buffer=1k;",
    "access_log @LOGS@/a combined buffer=1k; access_log @LOGS@/a combined;", "access_log @LOGS@/a combined; access_log @LOGS@/a combined buffer=1k;",
    "access_log @LOGS@/a combined buffer=1k flush=1s; access_log @LOGS@/a combined buffer=1k;",
    "access_log @LOGS@/a combined buffer=1k; access_log @LOGS@/a combined buffer=1k flush=1s;",
    "access_log @LOGS@/a combined buffer=1k gzip; access_log @LOGS@/a combined buffer=1k;",
    "access_log @LOGS@/a combined gzip; access_log @LOGS@/a combined gzip=2;",
    "access_log @LOGS@/a combined gzip buffer=64k; access_log @LOGS@/a combined gzip;", "access_log @LOGS@/a combined buffer=1k buffer=x;",
    "access_log @LOGS@/a combined buffer=2k buffer=1k;", "access_log @LOGS@/none/a;", 'access_log "";', 'access_log "" combined;', "access_log @LOGS@;",
    "access_log /;", "access_log /dev/stdout;", "if ($uri) { access_log @LOGS@/b; }", "log_format a b;",
):
    server(text)
for text in (
    "log_format;", "log_format a;", "log_format a escape=json;", "log_format a escape=default;", "log_format a escape=x;", "log_format a escape=;",
    "log_format a escape=json escape=none;", "log_format a x escape=json;", "log_format a 'x'; log_format a 'y';", "log_format combined 'y';",
    "log_format a '$nope';", "log_format a '$';", "log_format a '$ ';", "log_format a '${a';", "log_format a '$1';",
    "log_format a '${status}x$request_time';", "log_format a '$status$';", 'log_format "" \'$status\';', "log_format off '$status';",
    "log_format a ''; access_log @LOGS@/a a;", "access_log @LOGS@/a a; log_format a '$status';", "access_log @LOGS@/a main;", "open_log_file_cache;",
    "open_log_file_cache off;", "open_log_file_cache off; open_log_file_cache off;", "open_log_file_cache max=10; open_log_file_cache off;",
    "open_log_file_cache off off;", "open_log_file_cache off max=10;", "open_log_file_cache max=10 off;", "open_log_file_cache max=0;",
    "open_log_file_cache max=x;", "open_log_file_cache max=-1;", "open_log_file_cache max=;", "open_log_file_cache inactive=10s;",
    "open_log_file_cache max=10 inactive=x;", "open_log_file_cache max=10 inactive=;", "open_log_file_cache max=10 inactive=0;",
    "open_log_file_cache max=10 min_uses=0;", "open_log_file_cache max=10 min_uses=x;", "open_log_file_cache max=10 min_uses=2;",
    "open_log_file_cache max=10 valid=x;", "open_log_file_cache max=10 valid=0;", "open_log_file_cache max=10 valid=1m inactive=20s min_uses=2;",
    "open_log_file_cache max=10 valid=1m inactive=20s min_uses=2 x;", "open_log_file_cache max=10 x=1;", "open_log_file_cache max=10 max=20;",
    "open_log_file_cache on;", "log_subrequest;", "log_subrequest x;", "log_subrequest on off;", "log_subrequest on; log_subrequest off;",
    "log_not_found;", "log_not_found x;", "log_not_found on; log_not_found on;", "rewrite_log x;", "rewrite_log on; rewrite_log off;", "error_log;",
    "error_log @LOGS@/e2.log;", "error_log @LOGS@/e2.log x;", "error_log @LOGS@/e2.log Error;", "error_log @LOGS@/e2.log error warn;",
    "error_log @LOGS@/e2.log error error;", "error_log @LOGS@/e2.log error debug_http;", "error_log @LOGS@/e2.log debug_http;",
    "error_log @LOGS@/e2.log debug_http debug_core;", "error_log @LOGS@/e2.log debug_http debug_http;", "error_log @LOGS@/e2.log debug debug_http;",
    "error_log @LOGS@/e2.log debug_http debug;", "error_log @LOGS@/e2.log debug_http error;", "error_log @LOGS@/e2.log debug_x;",
    "error_log @LOGS@/e2.log stderr;", "error_log @LOGS@/e2.log emerg;", "error_log @LOGS@/e2.log alert;", "error_log @LOGS@/e2.log crit;",
    "error_log @LOGS@/e2.log notice;", "error_log @LOGS@/e2.log info;", "error_log @LOGS@/e2.log debug;",
    "error_log @LOGS@/e2.log debug_core debug_alloc debug_mutex debug_event debug_mail debug_stream;", 'error_log @LOGS@/e2.log "";', 'error_log "";',
    "error_log stderr;", "error_log stderr debug;", "error_log stderr x;", "error_log memory:;", "error_log memory:32m debug;", "error_log memory:1k;",
    "error_log memory:x;", "error_log memory:0;", "error_log memory:-1;", "error_log memory:4k; error_log memory:4k;", "error_log memory:1;",
    "error_log memory:99;", "error_log memory:31;", "error_log memory:32;", "error_log memory:33;", "error_log memory:128;", "error_log syslog:;",
    "error_log syslog:server=127.0.0.1;", "error_log syslog:server=127.0.0.1 warn;", "error_log syslog:server=127.0.0.1 x;",
    "error_log syslog:server=nohost.invalid;", "error_log syslog:server=127.0.0.1,severity=debug;",
    "error_log syslog:server=127.0.0.1,tag=a; error_log @LOGS@/x; error_log stderr info;", "error_log @LOGS@/e2.log; error_log @LOGS@/e2.log;",
    "error_log @LOGS@/e2.log error; error_log @LOGS@/e2.log warn;", "error_log @LOGS@/$uri;", "error_log @LOGS@/none/x;", "error_log /dev/null;",
    "error_log /dev/full;", "error_log @LOGS@;", "debug_connection 127.0.0.1;", "error_log memory:2k;", "error_log memory:3k;",
):
    http(text)
for text in (
    "access_log @LOGS@/a; if ($uri) { access_log @LOGS@/b; }", "limit_except GET { access_log @LOGS@/b; }", "open_log_file_cache max=1;",
    "if ($uri) { rewrite_log on; }", "if ($uri) { log_not_found off; }", "if ($uri) { error_log @LOGS@/e2.log; }",
    "limit_except GET { error_log @LOGS@/e2.log; }",
):
    location(text)
for text in (
    "access_log @LOGS@/a;", "log_format a b;", "open_log_file_cache off;", "log_subrequest on;", "debug_points abort;", "debug_points stop;",
    "debug_points x;",
):
    main(text)
for text in (
    "error_log @LOGS@/e2.log x;", "error_log @LOGS@/e2.log error x;", "error_log memory:4k;", "error_log @LOGS@/none/e.log;",
    "error_log syslog:server=nohost.invalid;", "error_log @LOGS@/a; error_log @LOGS@/b; error_log stderr;",
):
    whole(f"main: {text}", "pid @LOGS@/pid; " + text + "\nevents {}\nhttp { access_log off; }\n")
for text in (
    "debug_connection 127.0.0.1;", "debug_connection x;", "debug_connection 127.0.0.0/8;", "debug_connection 127.0.0.1/8;", "debug_connection ::1;",
    "debug_connection fe80::/10;", "debug_connection unix:;", "debug_connection localhost;", "debug_connection nohost.invalid;",
    "debug_connection 127.0.0.1/99;", "debug_connection;", "debug_connection 127.0.0.1 127.0.0.2;", "debug_connection all;", "debug_points abort;",
    "debug_connection ::/129;", "debug_connection ::1/0;", "debug_connection 127.0.0.1/;", "debug_connection unix;",
):
    whole(f"events: {text}", HEAD.replace("events {}", "events {\n" + text + "\n}") + "http { access_log off; }\n")
