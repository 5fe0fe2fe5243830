//! `grpc_pass` with a real client and a real service, and with an upstream that the test plays.

pub(crate) mod peer;

use bolide_testkit::origin::TestUpstream;
use bolide_testkit::server::LISTEN;
use bolide_testkit::tools::{Companion, python};
use bolide_testkit::{Proto, TestServer, wait_until};

use crate::http;
use peer::{END, H2Peer, HEADERS, RST_STREAM, WHOLE, block, frame, ok, reply};

pub(crate) const CLIENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/grpc/client.py");
const SERVICE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/grpc/service.py");

/// What a call is expected to be like, whatever lies between client and service.
pub(crate) const CALLS: [&str; 9] =
    ["messages", "metadata", "errors", "streams", "chat", "greeting", "cancel", "deadline", "many"];

/// What an upstream says on a stream.
type Said = fn(u32) -> Vec<u8>;

/// Starts the service at these addresses; returns the ports.
pub(crate) fn service(words: &[&str]) -> (Companion, Vec<String>) {
    let service = Companion::start(SERVICE, words);
    let line = service.line();
    let mut ready = line.split(' ').map(str::to_owned);
    assert_eq!(ready.next().as_deref(), Some("ready"));
    (service, ready.collect())
}

/// Runs checks of the client; returns what it says.
fn calls(target: &str, trusted: &str, names: &[&str]) -> String {
    python(CLIENT, [&[target, trusted], names].concat()).succeeded().text()
}

/// A server that passes everything to this address, with more directives around that.
fn serve(address: &str, more: &str) -> TestServer {
    http(&format!(
        "{more} server {{ {LISTEN} client_max_body_size 0; \
         location / {{ grpc_pass {address}; }} }}"
    ))
}

fn plain(server: &TestServer) -> String {
    server.http().to_string()
}

#[test]
fn a_real_client_and_a_real_service_understand_one_another() {
    let (_service, ports) = service(&["127.0.0.1:0"]);
    let alone = serve(&format!("127.0.0.1:{}", ports[0]), "");
    calls(&plain(&alone), "-", &CALLS);
    let group = format!("upstream u {{ server 127.0.0.1:{}; keepalive 4; }}", ports[0]);
    let kept = serve("grpc://u", &group);
    calls(&plain(&kept), "-", &CALLS);
    let log = kept.error_log();
    assert!(!log.contains("[error]") && !log.contains("[alert]"), "{log}");
}

#[test]
fn messages_pass_at_once_over_http3_as_well() {
    let (_service, ports) = service(&["127.0.0.1:0"]);
    let server = serve(&format!("127.0.0.1:{}", ports[0]), "");
    let chat = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/grpc/h3_chat.py");
    let (port, own) = (server.https().port().to_string(), server.home().expand("@CERT@"));
    let _quiet = python(chat, [&port, &own]).succeeded();
}

#[test]
fn both_sides_may_have_tls() {
    let home = bolide_testkit::server::Home::new(crate::BOLIDE);
    let cert = bolide_testkit::certs::make(
        home.dir(),
        "service",
        bolide_testkit::certs::CertKey::Ecdsa,
        &["service.test"],
    );
    let (trusted, key) = (cert.cert.display().to_string(), cert.key.display().to_string());
    let (_service, ports) = service(&["tls:127.0.0.1:0", &trusted, &key]);
    let server = serve(
        &format!("grpcs://127.0.0.1:{}", ports[0]),
        &format!(
            "grpc_ssl_verify on; grpc_ssl_trusted_certificate {trusted};
             grpc_ssl_name service.test; grpc_ssl_server_name on;"
        ),
    );
    let own = server.home().expand("@CERT@");
    calls(&server.https().to_string(), &own, &CALLS);
    let refused = serve(
        &format!("grpcs://127.0.0.1:{}", ports[0]),
        &format!(
            "grpc_ssl_verify on; grpc_ssl_trusted_certificate {trusted};
             grpc_ssl_name other.test; grpc_ssl_server_name on;"
        ),
    );
    assert_eq!(refused.get("/").status, 502);
}

#[test]
fn fields_are_set_where_the_innermost_block_has_them_and_authority_is_the_upstream() {
    let upstream = TestUpstream::scripted(|peer| {
        let Ok(mut h2) = H2Peer::greet(peer) else { return };
        while let Ok((stream, block)) = h2.call() {
            let _sent = h2.send(&reply(stream, &block.join("\n")));
        }
    });
    let at = upstream.address();
    let server = http(&format!(
        "grpc_set_header A http; grpc_set_header B \"$arg_b\"; server {{ {LISTEN}
         location / {{ grpc_pass {at}; }}
         location /own {{ grpc_set_header A own; grpc_set_header User-Agent \"\";
           grpc_set_header Connection close; grpc_set_header Content-Length 77; grpc_pass {at}; }}
         location /host {{ grpc_set_header Host h.test; grpc_pass {at}; }}
         location /less {{ grpc_set_header Content-Length \"\"; grpc_pass {at}; }}
         location /vars {{ grpc_pass grpc://$arg_to; }}
         location /rewritten {{ rewrite ^ \"/a b?c=d\" break; grpc_pass {at}; }} }}"
    ));
    let ask = |path: &str, fields: &str| {
        let text = server.connect().ask(&format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nUser-Agent: u\r\nContent-Length: 2\r\n\
             {fields}\r\nhi"
        ));
        text.text()
    };
    let pseudo = |path: &str| format!(":method: POST\n:scheme: http\n:path: {path}\n");
    let all =
        ask("/?b=1", "TE: trailers\r\nConnection: TE, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 2\r\n");
    let rest = "a: http\nb: 1\ncontent-length: 2\nte: trailers\nuser-agent: u";
    assert_eq!(all, format!("{}:authority: {at}\n{rest}", pseudo("/?b=1")));
    let own = ask("/own", "A: client\r\n");
    assert_eq!(own, format!("{}:authority: {at}\na: own\ncontent-length: 2", pseudo("/own")));
    let host = ask("/host", "");
    let rest = "host: h.test\ncontent-length: 2\nuser-agent: u";
    assert_eq!(host, format!("{}{rest}", pseudo("/host")));
    let less = ask("/less", "");
    assert_eq!(less, format!("{}:authority: {at}\nuser-agent: u", pseudo("/less")));
    let path = format!("/vars?to={at}");
    assert!(ask(&path, "").starts_with(&format!("{}:authority: {at}\n", pseudo(&path))));
    assert_eq!(server.connect().get("/vars?to=127.0.0.1", "").status, 500);
    assert!(ask("/rewritten", "").starts_with(&pseudo("/a%20b?c=d")));
}

#[test]
fn an_error_page_tells_grpc_clients_that_the_service_is_unavailable() {
    let server = http(&format!(
        "server {{ {LISTEN} error_page 502 = /unavailable;
         location / {{ grpc_pass 127.0.0.1:1; }}
         location = /unavailable {{ internal; default_type application/grpc;
           add_header grpc-status 14; add_header grpc-message unavailable;
           add_header content-length 0; return 204; }} }}"
    ));
    let said = calls(&plain(&server), "-", &["unavailable"]);
    assert!(said.starts_with("unavailable\n"), "{said}");
    assert!(server.error_log().contains("upstream: \"grpc://127.0.0.1:1\""));
}

#[test]
fn a_client_of_any_version_gets_the_response_and_its_trailers() {
    let upstream = TestUpstream::scripted(|peer| {
        let Ok(mut h2) = H2Peer::greet(peer) else { return };
        while let Ok((stream, _)) = h2.call() {
            let _sent = h2.send(&reply(stream, "hello"));
        }
    });
    let server = http(&format!(
        "log_format l \"$upstream_status $upstream_response_length $upstream_trailer_grpc_status \
         $sent_trailer_grpc_status $upstream_addr\"; access_log @DIR@/logs/access.log l;
         server {{ {LISTEN} location / {{ grpc_pass {}; }} }}",
        upstream.address()
    ));
    for proto in [Proto::H1, Proto::H2, Proto::H3, Proto::H2c] {
        let reply = server.fetch(proto, "/a.B/C");
        assert_eq!((reply.status, reply.text()), (200, "hello".to_owned()), "{proto:?}");
        assert_eq!(reply.header("content-type"), Some("application/grpc"), "{proto:?}");
    }
    let mut client = server.connect();
    client.send("GET / HTTP/1.1\r\nHost: x\r\nTE: trailers\r\nConnection: close, TE\r\n\r\n");
    let bytes = String::from_utf8_lossy(&client.to_end().unwrap()).into_owned();
    assert!(bytes.ends_with("\r\n\r\n5\r\nhello\r\n0\r\ngrpc-status: 0\r\n\r\n"), "{bytes}");
    let line = format!("200 5 0 0 {}", upstream.address());
    assert_eq!(server.access_lines(5).last(), Some(&line));
}

#[test]
fn trailers_behind_a_declared_length_are_passed_where_they_have_a_place() {
    let upstream = TestUpstream::scripted(|peer| {
        let Ok(mut h2) = H2Peer::greet(peer) else { return };
        while let Ok((stream, _)) = h2.call() {
            let head = block(&[(":status", "200"), ("content-length", "5")]);
            let body = [frame(HEADERS, WHOLE, stream, &head), frame(0, 0, stream, b"hello")];
            // The answer to the ping shows that the server has read the whole body.
            let ping = frame(6, 0, 0, b"12345678");
            if h2.send(&[body.concat(), ping].concat()).is_err() || h2.next_of(6).is_err() {
                return;
            }
            let trailers = block(&[("grpc-status", "7")]);
            let _sent = h2.send(&frame(HEADERS, WHOLE | END, stream, &trailers));
        }
    });
    let server = http(&format!(
        "log_format l \"$sent_trailer_grpc_status\"; access_log @DIR@/logs/access.log l;
         upstream u {{ server {}; keepalive 2; }}
         server {{ {LISTEN} location / {{ grpc_pass u; }} }}",
        upstream.address()
    ));
    let protos = [(Proto::H2, "7"), (Proto::H3, "7"), (Proto::H2c, "7"), (Proto::H1, "-")];
    for (at, (proto, trailer)) in protos.into_iter().enumerate() {
        let reply = server.fetch(proto, "/");
        assert_eq!((reply.status, reply.text()), (200, "hello".to_owned()), "{proto:?}");
        assert_eq!(reply.header("content-length"), Some("5"), "{proto:?}");
        assert_eq!(server.access_lines(at + 1).last().map(String::as_str), Some(trailer));
    }
}

#[test]
fn a_kept_connection_carries_one_call_after_another_and_answers_between_them() {
    let upstream = TestUpstream::scripted(|peer| {
        let Ok(mut h2) = H2Peer::greet(peer) else { return };
        let mut calls = 0;
        while let Ok((stream, _)) = h2.call() {
            calls += 1;
            let text = format!("{stream} of {}", h2.number());
            if h2.send(&reply(stream, &text)).is_err() {
                return;
            }
            if calls < 3 {
                // It must be answered although no request is there.
                let _sent = h2.send(&frame(6, 0, 0, b"12345678"));
                assert_eq!(h2.next_of(6).map(|it| it.1).ok(), Some(1), "the ping is answered");
            } else {
                let _sent = h2.send(&frame(7, 0, 0, &[0, 0, 0, 5, 0, 0, 0, 0]));
            }
        }
    });
    let group = format!("upstream u {{ server {}; keepalive 2; }}", upstream.address());
    let server = serve("u", &group);
    for text in ["1 of 0", "3 of 0", "5 of 0"] {
        assert_eq!(server.get("/").text(), text);
    }
    wait_until("the connection to be closed", || upstream.closed() == 1);
    assert_eq!(server.get("/").text(), "1 of 1");
}

#[test]
fn a_kept_connection_that_takes_no_more_calls_is_replaced() {
    let refusals: [Said; 2] = [
        |_| frame(7, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0]),
        |stream| frame(RST_STREAM, 0, stream, &[0, 0, 0, 7]),
    ];
    for refusal in refusals {
        let upstream = TestUpstream::scripted(move |peer| {
            let Ok(mut h2) = H2Peer::greet(peer) else { return };
            while let Ok((stream, _)) = h2.call() {
                let is_first = stream == 1;
                let said = if is_first { reply(stream, "fine") } else { refusal(stream) };
                let _sent = h2.send(&said);
            }
        });
        let group = format!("upstream u {{ server {}; keepalive 2; }}", upstream.address());
        let server = serve("u", &group);
        let post = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi";
        for connections in [1, 2, 3] {
            let reply = server.connect().ask(post);
            assert_eq!((reply.status, reply.text()), (200, "fine".to_owned()));
            assert_eq!(upstream.connections(), connections);
        }
    }
}

#[test]
fn an_upstream_that_allows_no_streams_gets_one_request_per_connection() {
    let upstream = TestUpstream::scripted(|peer| {
        let Ok(mut h2) = H2Peer::greet(peer) else { return };
        let _sent = h2.send(&frame(4, 0, 0, &[0, 3, 0, 0, 0, 0]));
        while let Ok((stream, _)) = h2.call() {
            let _sent = h2.send(&reply(stream, "fine"));
        }
    });
    let server =
        serve("u", &format!("upstream u {{ server {}; keepalive 2; }}", upstream.address()));
    for connections in [1, 2, 3] {
        assert_eq!(server.get("/").text(), "fine");
        assert_eq!(upstream.connections(), connections);
    }
}

#[test]
fn another_server_is_tried_as_nginx_does_it() {
    let faults: [(&str, Said, &str); 4] = [
        ("error", |_| Vec::new(), "while reading response header from upstream"),
        (
            "invalid_header",
            |stream| frame(RST_STREAM, 0, stream, &[0, 0, 0, 7]),
            "upstream rejected request with error 7",
        ),
        ("invalid_header", |_| frame(7, 0, 0, &[0; 8]), "upstream sent goaway with error 0"),
        (
            "http_503",
            |stream| frame(HEADERS, WHOLE | END, stream, &block(&[(":status", "503")])),
            "",
        ),
    ];
    for (word, fault, line) in faults {
        let bad = TestUpstream::scripted(move |peer| {
            let Ok(mut h2) = H2Peer::greet(peer) else { return };
            if let Ok((stream, _)) = h2.call() {
                let _sent = h2.send(&fault(stream));
            }
        });
        let good = TestUpstream::scripted(|peer| {
            let Ok(mut h2) = H2Peer::greet(peer) else { return };
            if let Ok((stream, _)) = h2.call() {
                let _sent = h2.send(&reply(stream, "fine"));
            }
        });
        let group =
            format!("upstream u {{ server {}; server {} backup; }}", bad.address(), good.address());
        let server = serve("u", &format!("{group} grpc_next_upstream {word};"));
        assert_eq!(server.get("/").text(), "fine", "{word}: {}", server.error_log());
        let post = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi";
        let server = serve("u", &format!("{group} grpc_next_upstream {word};"));
        let status = if line.is_empty() { 503 } else { 502 };
        assert_eq!(server.connect().ask(post).status, status, "{word}");
        assert!(server.error_log().contains(line), "{}", server.error_log());
    }
}

#[test]
fn a_target_that_cannot_be_sent_is_no_fault_of_the_upstream() {
    let servers = [(); 2].map(|()| {
        TestUpstream::scripted(|peer| {
            let Ok(mut h2) = H2Peer::greet(peer) else { return };
            while let Ok((stream, _)) = h2.call() {
                if h2.send(&reply(stream, "fine")).is_err() {
                    return;
                }
            }
        })
    });
    let names = servers.each_ref().map(|peer| format!("server {};", peer.address()));
    let server = http(&format!(
        "upstream two {{ {} }} server {{ {LISTEN}
             location / {{ grpc_pass two; }}
             location /made/ {{ rewrite ^/made/(.*) /x?u=$uri break; grpc_pass two; }} }}",
        names.concat()
    ));
    for _ in 0..4 {
        assert_eq!(server.get("/made/a%0d%0ab").status, 502);
    }
    assert_eq!(server.get("/plain").text(), "fine");
    assert!(server.error_log().contains("would have a line end"), "{}", server.error_log());
}

#[test]
fn a_client_that_leaves_has_its_stream_cancelled() {
    let upstream = TestUpstream::scripted(|peer| {
        let Ok(mut h2) = H2Peer::greet(peer) else { return };
        let Ok((stream, _)) = h2.call() else { return };
        let _sent = h2.send(&[ok(stream), frame(0, 0, stream, b"first")].concat());
        let code = h2.next_of(RST_STREAM).map(|it| it.3).ok();
        h2.remember(&format!("{code:?}"));
    });
    let server = serve(&upstream.address(), "");
    let mut client = server.connect();
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    while !String::from_utf8_lossy(&client.take(1).unwrap()).contains('f') {}
    drop(client);
    wait_until("the reset", || upstream.count("Some([0,") == 1);
    assert_eq!(upstream.all()[0].head, "CALL Some([0, 0, 0, 8])");
}

#[test]
fn a_large_body_fits_small_windows_and_its_response_is_complete_or_broken() {
    let upstream = TestUpstream::scripted(|peer| {
        let Ok(mut h2) = H2Peer::greet(peer) else { return };
        let window = frame(4, 0, 0, &[0, 4, 0, 0, 0x10, 0]);
        if h2.send(&window).is_err() {
            return;
        }
        let Ok((stream, size)) = h2.large_call() else { return };
        let _sent = h2.send(&reply(stream, &size.to_string()));
    });
    let server = serve(&upstream.address(), "client_max_body_size 0;");
    let head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 700000\r\n\r\n";
    let body = "x".repeat(700_000);
    assert_eq!(server.connect().send(format!("{head}{body}")).answer().text(), "700000");
    // A response that is cut anywhere never ends well.
    let whole = reply(1, "hello");
    let cuts = (0..whole.len()).step_by(7);
    let upstream = TestUpstream::scripted(move |peer| {
        let number = peer.number;
        let Ok(mut h2) = H2Peer::greet(peer) else { return };
        if h2.call().is_ok() {
            let whole = reply(1, "hello");
            let _sent = h2.send(&whole[..(number * 7).min(whole.len())]);
        }
    });
    let server = serve(&upstream.address(), "");
    for cut in cuts {
        let mut client = server.connect();
        client.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let bytes = String::from_utf8_lossy(&client.to_end().unwrap_or_default()).into_owned();
        let is_error = bytes.starts_with("HTTP/1.1 502 ");
        assert!(is_error || !bytes.ends_with("0\r\n\r\n"), "after {cut}: {bytes}");
    }
}

#[test]
fn nothing_is_kept_in_a_cache_whatever_blocks_around_say() {
    let upstream = TestUpstream::scripted(|peer| {
        let number = peer.number;
        let Ok(mut h2) = H2Peer::greet(peer) else { return };
        while let Ok((stream, _)) = h2.call() {
            let public = [(":status", "200"), ("cache-control", "public, max-age=60")];
            let head = frame(HEADERS, WHOLE, stream, &block(&public));
            let text = format!("{stream} of {number}");
            let _sent = h2.send(&[head, frame(0, END, stream, text.as_bytes())].concat());
        }
    });
    let server = serve(&upstream.address(), "page_cache on;");
    assert_eq!(
        (server.get("/").text(), server.get("/").text()),
        ("1 of 0".into(), "1 of 1".into())
    );
    let url = format!("http://localhost:{}/", server.home().port(0));
    let said = crate::explain::ask(&server, &["explain", &url]).succeeded().text();
    assert!(said.contains("responses of such an upstream are not kept in a cache"), "{said}");
}

#[test]
fn an_upstream_that_stands_still_ends_in_time() {
    let upstream = TestUpstream::scripted(|peer| {
        let Ok(mut h2) = H2Peer::greet(peer) else { return };
        let Ok((stream, block)) = h2.call() else { return };
        if block.iter().any(|field| field.starts_with(":path: /body")) {
            let _sent = h2.send(&[ok(stream), frame(0, 0, stream, b"hel")].concat());
        }
        let _rest = h2.drain();
    });
    let server = serve(&upstream.address(), "grpc_read_timeout 300ms; grpc_send_timeout 300ms;");
    assert_eq!(server.get("/").status, 504);
    let mut client = server.connect();
    client.send("GET /body HTTP/1.1\r\nHost: x\r\n\r\n");
    let bytes = String::from_utf8_lossy(&client.to_end().unwrap_or_default()).into_owned();
    assert!(bytes.contains("hel") && !bytes.ends_with("0\r\n\r\n"), "{bytes}");
    let log = server.error_log();
    for doing in ["while reading response header from upstream", "while reading upstream"] {
        let line = format!("upstream timed out (110: Connection timed out) {doing}");
        assert!(log.contains(&line), "{log}");
    }
    // It takes the head, and opens no window for the body.
    let closed = TestUpstream::scripted(|peer| {
        let Ok(mut h2) = H2Peer::greet(peer) else { return };
        let _sent = h2.send(&frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]));
        let _rest = h2.drain();
    });
    let server = serve(&closed.address(), "grpc_read_timeout 20s; grpc_send_timeout 300ms;");
    let body = "x".repeat(300_000);
    let head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\n\r\n";
    assert_eq!(server.connect().send(format!("{head}{body}")).answer().status, 504);
    let line = "upstream timed out (110: Connection timed out) while sending request to upstream";
    assert!(server.error_log().contains(line), "{}", server.error_log());
}
