//! `proxy_http_version 2`: with a Bolide as the upstream, with a real gRPC service behind TLS, and
//! with an upstream that the test plays.

use std::fs;

use bolide_testkit::server::{Home, LISTEN};
use bolide_testkit::tools::python;
use bolide_testkit::{Proto, TestServer, TestUpstream, certs};

use crate::grpc::peer::{END, H2Peer, HEADERS, RST_STREAM, WHOLE, block, frame, ok, reply};
use crate::grpc::{CALLS, CLIENT, service};
use crate::{BOLIDE, http};

/// A server that passes everything to this address over HTTP/2, with more directives around that.
fn serve(address: &str, location: &str, more: &str) -> TestServer {
    http(&format!(
        "{more} upstream app {{ server {address}; keepalive 4; }}
         server {{ {LISTEN} client_max_body_size 0; proxy_http_version 2;
             location / {{ proxy_pass http://app; {location} }} }}"
    ))
}

#[test]
fn a_site_is_proxied_and_cached() {
    let origin = http(&format!("server {{ {LISTEN} }}"));
    let large: Vec<u8> = (0..3_000_000_u32).map(|at| (at / 7) as u8).collect();
    fs::write(origin.www("large.bin"), &large).unwrap();
    fs::write(origin.www("page.txt"), "a page").unwrap();
    let front = serve(
        &origin.http().to_string(),
        "proxy_cache one; proxy_cache_valid 200 1m; add_header X-Status $upstream_cache_status;",
        "proxy_cache_path @DIR@/cache keys_zone=one:1m;",
    );
    for (at, proto) in [Proto::H1, Proto::H2, Proto::H3, Proto::H2c].into_iter().enumerate() {
        let status = if at == 0 { "MISS" } else { "HIT" };
        for (path, body) in [("/page.txt", &b"a page"[..]), ("/large.bin", &large)] {
            let got = front.fetch(proto, path);
            assert_eq!((got.status, got.header("x-status")), (200, Some(status)), "{proto:?}");
            assert!(got.body == body, "{proto:?} {path}");
        }
    }
    assert_eq!(front.get("/missing").status, 404);
    let lines = origin.access_lines(3);
    assert!(lines.iter().all(|line| line.contains("HTTP/2.0\"")), "{lines:?}");
}

#[test]
fn a_grpc_service_behind_tls_is_understood() {
    let home = Home::new(BOLIDE);
    let cert = certs::make(home.dir(), "service", certs::CertKey::Ecdsa, &["service.test"]);
    let (trusted, key) = (cert.cert.display().to_string(), cert.key.display().to_string());
    let (_service, ports) = service(&["tls:127.0.0.1:0", &trusted, &key]);
    let server = http(&format!(
        "server {{ {LISTEN} client_max_body_size 0;
             location / {{ proxy_pass https://127.0.0.1:{}; proxy_http_version 2;
                 proxy_buffering off; proxy_request_buffering off; proxy_pass_trailers on;
                 proxy_set_header TE trailers; proxy_set_header Host service.test;
                 proxy_ssl_verify on; proxy_ssl_trusted_certificate {trusted};
                 proxy_ssl_name service.test; }} }}",
        ports[0]
    ));
    let own = server.home().expand("@CERT@");
    let _quiet =
        python(CLIENT, [&[&*server.https().to_string(), &own], &CALLS[..]].concat()).succeeded();
    let log = server.error_log();
    assert!(!log.contains("[error]") && !log.contains("[alert]"), "{log}");
}

#[test]
fn bodies_obey_the_windows_and_fields_the_rules_of_http2() {
    let upstream = TestUpstream::scripted(|peer| {
        let Ok(mut h2) = H2Peer::greet(peer) else { return };
        if let Ok((stream, size)) = h2.large_call() {
            let _sent = h2.send(&reply(stream, &size.to_string()));
        }
        while let Ok((stream, fields)) = h2.call() {
            let _sent = h2.send(&reply(stream, &fields.join("\n")));
        }
    });
    let fields = "proxy_set_header Connection upgrade; proxy_set_header Upgrade $http_upgrade;
        proxy_set_header \"A:\" b; proxy_set_header X-Own \"a b\"; proxy_set_header TE gzip;";
    let server = serve(&upstream.address(), fields, "");
    let mut client = server.connect();
    let body = "b".repeat(500_000);
    let head = format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n", body.len());
    assert_eq!(client.ask(&(head + &body)).text(), "500000");
    let text = client.ask("GET /a?b HTTP/1.1\r\nHost: h\r\nUpgrade: x\r\nX-C: d\r\n\r\n").text();
    let pseudo = ":method: GET\n:scheme: http\n:path: /a?b\n:authority: app";
    assert_eq!(text, format!("{pseudo}\nx-own: a b\nx-c: d"));
}

#[test]
fn another_server_is_tried_where_a_request_was_not_processed() {
    let refusals: [fn(u32) -> Vec<u8>; 2] =
        [|_| frame(7, 0, 0, &[0; 8]), |stream| frame(RST_STREAM, 0, stream, &[0, 0, 0, 7])];
    for refusal in refusals {
        let bad = TestUpstream::scripted(move |peer| {
            let Ok(mut h2) = H2Peer::greet(peer) else { return };
            if let Ok((stream, _)) = h2.call() {
                let _sent = h2.send(&refusal(stream));
            }
        });
        let good = TestUpstream::scripted(|peer| {
            let Ok(mut h2) = H2Peer::greet(peer) else { return };
            if let Ok((stream, _)) = h2.call() {
                let _sent = h2.send(&reply(stream, "fine"));
            }
        });
        let both = format!("{}; server {} backup", bad.address(), good.address());
        let server = serve(&both, "proxy_next_upstream error invalid_header;", "");
        assert_eq!(server.get("/").text(), "fine", "{}", server.error_log());
    }
}

#[test]
fn a_response_that_breaks_off_is_not_stored_and_trailers_pass_only_if_told() {
    let upstream = TestUpstream::scripted(|peer| {
        let Ok(mut h2) = H2Peer::greet(peer) else { return };
        while let Ok((stream, fields)) = h2.call() {
            let is_broken = fields.iter().any(|field| field == ":path: /broken");
            let trailers = frame(HEADERS, WHOLE | END, stream, &block(&[("x-t", "1")]));
            let end =
                if is_broken { frame(RST_STREAM, 0, stream, &[0, 0, 0, 2]) } else { trailers };
            let sent = h2.send(&[ok(stream), frame(0, 0, stream, b"hello"), end].concat());
            if sent.is_err() {
                return;
            }
        }
    });
    let server = serve(
        &upstream.address(),
        "proxy_cache one; proxy_cache_valid 1m; add_header X-Status $upstream_cache_status;
         location /passed { proxy_pass http://app; proxy_pass_trailers on; }",
        "proxy_cache_path @DIR@/cache keys_zone=one:1m;",
    );
    for _ in 0..2 {
        let mut client = server.connect();
        client.send("GET /broken HTTP/1.1\r\nHost: h\r\n\r\n");
        let text = String::from_utf8_lossy(&client.to_end().unwrap()).into_owned();
        assert!(text.contains("X-Status: MISS") && !text.ends_with("0\r\n\r\n"), "{text}");
    }
    let end = |path: &str| {
        let mut client = server.connect();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"));
        let text = String::from_utf8_lossy(&client.to_end().unwrap()).into_owned();
        text.split_once("\r\n\r\n").unwrap().1.to_owned()
    };
    assert_eq!(end("/passed"), "5\r\nhello\r\n0\r\nx-t: 1\r\n\r\n");
    assert_eq!(end("/whole"), "5\r\nhello\r\n0\r\n\r\n");
}
