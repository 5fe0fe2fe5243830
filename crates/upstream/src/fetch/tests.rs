//! Single fetches, step by step.

use std::sync::Arc;
use std::time::Duration;

use bolide_base::prng::Prng;
use bolide_base::spool::{Retain, Spool, SpoolLimits};
use bolide_base::{CopyPolicy, Instant, Now, SendChain};
use bolide_conf::model::{Balance, OriginSettings, Upstream, UpstreamKind, UpstreamServer};
use bolide_wire::{OriginError, OriginEvent};
use bytes::Bytes;

mod secured;

use super::Fetch;
use crate::tests::support::{
    body, head, limited, queueing, request, server, settings, unix, upstream,
};
use crate::{
    CallHindrance, FetchCtx, FetchEffect, FetchFate, FetchWake, Left, LinkPools, OriginLogLine,
    OriginNews, OriginRequest, Turns, UpstreamGroups,
};

const SENT: FetchWake = FetchWake::Sent { bytes: 100, left: Left::Nothing };
const END: FetchWake = FetchWake::Event(OriginEvent::End { app_status: 0 });

/// One worker without connections: it records the effects of fetches.
struct Bench {
    groups: UpstreamGroups,
    pools: LinkPools,
    prng: Prng,
    now: Now,
    fetches: Vec<Fetch>,
    deadlines: Vec<Option<Instant>>,
    /// Attempts reported at their beginning.
    begun: usize,
}

impl Bench {
    fn new(upstream: Upstream) -> Self {
        Self {
            groups: UpstreamGroups::new(&[upstream], None),
            pools: LinkPools::new(0),
            prng: Prng::new(1),
            now: Now { mono: Instant::from_nanos(3_600_000_000_000), unix_millis: 0 },
            fetches: Vec::new(),
            deadlines: Vec::new(),
            begun: 0,
        }
    }

    fn of(servers: Vec<UpstreamServer>) -> Self {
        Self::new(upstream(Balance::RoundRobin, servers))
    }

    /// Makes a fetch and wakes it with `Start`.
    fn start(&mut self, request: Box<OriginRequest>) -> Vec<String> {
        self.fetches.push(Fetch::new(request));
        self.deadlines.push(None);
        let last = self.fetches.len() - 1;
        self.wake(last, FetchWake::Start)
    }

    fn wake(&mut self, fetch: usize, wake: FetchWake) -> Vec<String> {
        let mut effects = Vec::new();
        let mut ctx = FetchCtx {
            now: self.now,
            me: fetch as u64,
            prng: &mut self.prng,
            groups: &self.groups,
            pools: &mut self.pools,
            effects: &mut effects,
        };
        self.fetches[fetch].step(wake, &mut ctx);
        let mut told = Vec::new();
        for effect in effects {
            match effect {
                FetchEffect::Deadline(at) => self.deadlines[fetch] = Some(at),
                FetchEffect::Notify(OriginNews::Attempt(attempt))
                    if attempt.status == 0 && !attempt.is_over =>
                {
                    self.begun += 1;
                }
                other => told.push(line(&other)),
            }
        }
        told
    }

    /// Wakes in order and returns the effects of the last wake.
    fn wakes<const N: usize>(&mut self, wakes: [FetchWake; N]) -> Vec<String> {
        let last = self.fetches.len() - 1;
        wakes.into_iter().fold(Vec::new(), |_, wake| self.wake(last, wake))
    }

    /// Lets time pass up to each deadline that the last fetch has within this many seconds.
    fn pass(&mut self, seconds: u64) -> Vec<String> {
        let last = self.fetches.len() - 1;
        let end = self.now.mono.after(Duration::from_secs(seconds));
        let mut told = Vec::new();
        while let Some(at) = self.deadlines[last].filter(|at| *at <= end) {
            self.deadlines[last] = None;
            self.now.mono = self.now.mono.max(at);
            told.extend(self.wake(last, FetchWake::Deadline));
        }
        self.now.mono = end;
        told
    }

    fn turns(&mut self) -> Vec<u64> {
        let mut turns = Turns::default();
        self.pools.take_turns(&mut turns);
        assert!(turns.notices.is_empty(), "there is one worker");
        turns.wake
    }

    fn conns(&self) -> u32 {
        self.groups.iter().map(|group| group.conns()).sum()
    }
}

fn line(effect: &FetchEffect) -> String {
    match effect {
        FetchEffect::Resolve(name) => format!("resolve {}", String::from_utf8_lossy(&name.host)),
        FetchEffect::Connect(address) => format!("connect {address}"),
        FetchEffect::Reuse(link) => format!("reuse {link}"),
        FetchEffect::Send => "send".to_owned(),
        FetchEffect::Deadline(_) => "deadline".to_owned(),
        FetchEffect::Release(FetchFate::Keep) => "keep".to_owned(),
        FetchEffect::Release(FetchFate::Close) => "close".to_owned(),
        FetchEffect::Release(FetchFate::Abort) => "abort".to_owned(),
        FetchEffect::Linger => "linger".to_owned(),
        FetchEffect::Evict(link) => format!("evict {link}"),
        FetchEffect::Finish => "finish".to_owned(),
        FetchEffect::Notify(news) => match news {
            OriginNews::Early(head) => format!("early {}", head.status),
            OriginNews::Unused(head) => format!("unused {}", head.status),
            OriginNews::Head(head) => format!("head {}", head.status),
            OriginNews::Body(bytes) => format!("body {}", bytes.len()),
            OriginNews::Trailers(fields) => format!("{} trailers", fields.len()),
            OriginNews::End => "end".to_owned(),
            OriginNews::Failed(refused) => match refused.retry_after {
                Some(seconds) => format!("failed {} after {seconds}", refused.status),
                None => format!("failed {}", refused.status),
            },
            OriginNews::Attempt(attempt) => {
                let over = if attempt.is_over { "over" } else { "under way" };
                format!("attempt {} {} {over}", attempt.peer, attempt.status)
            }
            OriginNews::Log(line) => {
                let OriginLogLine { level, text, doing, peer } = &**line;
                let text = String::from_utf8_lossy(text);
                let peer = peer.as_deref().unwrap_or("nobody");
                format!("{level:?}: {text} {doing} ({peer})")
            }
        },
    }
}

fn patient() -> OriginSettings {
    let mut settings = settings();
    settings.connect_timeout = Duration::from_secs(5);
    settings.send_timeout = Duration::from_secs(20);
    settings.read_timeout = Duration::from_secs(30);
    settings.next_upstream.error = true;
    settings.next_upstream.timeout = true;
    settings
}

fn keeping() -> OriginSettings {
    OriginSettings { keep_conn: true, ..patient() }
}

fn post(settings: OriginSettings, retain: Retain) -> Box<OriginRequest> {
    let mut request = request(settings);
    request.is_idempotent = false;
    request.body = Spool::new(SpoolLimits { memory: 100, file: 0 }, retain);
    request.body.push(Bytes::from_static(b"0123456789"));
    request.body.finish();
    request.body_len = Some(10);
    request
}

#[test]
fn an_answer_goes_from_the_choice_to_the_end() {
    let mut bench = Bench::of(vec![server(1)]);
    assert_eq!(bench.start(request(patient())), ["connect 127.0.0.1:1"]);
    assert_eq!(bench.conns(), 1);
    assert_eq!(bench.wakes([FetchWake::Connected(9)]), ["send"]);
    assert!(bench.wakes([SENT, FetchWake::Received(60)]).is_empty());
    assert_eq!(bench.wakes([FetchWake::Event(head(103))]), ["early 103"]);
    assert_eq!(
        bench.wakes([FetchWake::Event(head(0))]),
        ["attempt 127.0.0.1:1 200 under way", "head 0"]
    );
    assert_eq!(bench.wakes([FetchWake::Event(body("hello"))]), ["body 5"]);
    assert_eq!(bench.wakes([END]), ["close", "attempt 127.0.0.1:1 200 over", "end", "finish"]);
    assert!(bench.fetches[0].is_over() && bench.conns() == 0);
    assert!(bench.wakes([END]).is_empty());
}

#[test]
fn an_attempt_tells_times_and_sizes() {
    let mut bench = Bench::of(vec![server(1)]);
    bench.start(request(patient()));
    let (mut told, mut stood) = (None, Vec::new());
    let wakes = [
        FetchWake::Connected(1),
        SENT,
        FetchWake::Received(60),
        FetchWake::Event(head(404)),
        FetchWake::Event(body("hello")),
        END,
    ];
    for wake in wakes {
        bench.now.mono = bench.now.mono.after(Duration::from_millis(10));
        let mut effects = Vec::new();
        let mut ctx = FetchCtx {
            now: bench.now,
            me: 0,
            prng: &mut bench.prng,
            groups: &bench.groups,
            pools: &mut bench.pools,
            effects: &mut effects,
        };
        bench.fetches[0].step(wake, &mut ctx);
        for effect in effects {
            if let FetchEffect::Notify(OriginNews::Attempt(attempt)) = effect {
                stood.push((attempt.status, attempt.is_over));
                told = Some(attempt);
            }
        }
    }
    assert_eq!((bench.begun, &stood[..]), (1, &[(404, false), (404, true)][..]));
    let told = told.unwrap();
    assert_eq!((told.status, told.connect_ms, told.header_ms), (404, Some(10), Some(40)));
    assert_eq!((told.response_ms, told.response_len), (60, 5));
    assert_eq!((told.bytes_sent, told.bytes_received, told.is_over), (100, 60, true));
}

#[test]
fn connect_failures_are_logged_in_nginxs_words() {
    let mut bench = Bench::of(vec![server(1), unix("/x")]);
    bench.start(request(patient()));
    assert_eq!(
        bench.wakes([FetchWake::ConnectFailed(111)]),
        [
            "Error: connect() failed (111: Connection refused) while connecting to upstream \
             (127.0.0.1:1)",
            "Warn: upstream server temporarily disabled while connecting to upstream \
             (127.0.0.1:1)",
            "attempt 127.0.0.1:1 502 over",
            "connect unix:/x",
        ]
    );
    assert_eq!(
        bench.wakes([FetchWake::ConnectFailed(2)]),
        [
            "Crit: connect() to unix:/x failed (2: No such file or directory) while connecting \
             to upstream (unix:/x)",
            "Warn: upstream server temporarily disabled while connecting to upstream (unix:/x)",
            "attempt unix:/x 502 over",
            "failed 502",
            "finish",
        ]
    );
    assert_eq!(
        bench.start(request(patient())),
        [
            "Error: no live upstreams while connecting to upstream (group)",
            "attempt group 502 over",
            "failed 502",
            "finish",
        ]
    );
    let mut bench = Bench::of(vec![server(1)]);
    bench.start(request(patient()));
    assert_eq!(
        bench.wakes([FetchWake::ConnectFailed(101)])[0],
        "Error: connect() to 127.0.0.1:1 failed (101: Network is unreachable) while connecting \
         to upstream (127.0.0.1:1)"
    );
}

#[test]
fn what_is_wanting_here_is_blamed_on_no_server() {
    let cases = [
        (CallHindrance::Socket(24), "Alert: socket() failed (24: Too many open files)"),
        (CallHindrance::Bind(99), "Crit: bind() failed (99: Cannot assign requested address)"),
        (CallHindrance::Watch, "Alert: epoll_ctl() failed"),
        (CallHindrance::Full, "Alert: worker_connections are not enough"),
    ];
    let mut bench = Bench::of(vec![server(1), server(2)]);
    for (hindrance, line) in cases {
        let peer = bench.start(request(patient()))[0].replace("connect ", "");
        let fetch = bench.fetches.len() - 1;
        assert_eq!(
            bench.wake(fetch, FetchWake::NotCalled(hindrance)),
            [
                format!("{line} while connecting to upstream ({peer})"),
                "attempt  0 over".to_owned(),
                "failed 500".to_owned(),
                "finish".to_owned(),
            ]
        );
    }
    assert!(bench.start(request(patient()))[0].starts_with("connect "), "each may be asked");
}

#[test]
fn each_part_has_its_time_limit() {
    let limit = "upstream timed out (110: Connection timed out)";
    let mut bench = Bench::of(vec![server(1)]);
    bench.start(request(patient()));
    assert!(bench.pass(4).is_empty());
    assert_eq!(
        bench.pass(1),
        [
            "close".to_owned(),
            format!("Error: {limit} while connecting to upstream (127.0.0.1:1)"),
            "attempt 127.0.0.1:1 504 over".to_owned(),
            "failed 504".to_owned(),
            "finish".to_owned(),
        ]
    );
    bench.start(request(patient()));
    let blocked = || FetchWake::Sent { bytes: 1, left: Left::Blocked };
    bench.wakes([FetchWake::Connected(1), blocked()]);
    assert!(bench.pass(19).is_empty());
    bench.wakes([blocked()]);
    assert!(bench.pass(19).is_empty());
    let doing = "while sending request to upstream (127.0.0.1:1)";
    assert_eq!(bench.pass(1)[1], format!("Error: {limit} {doing}"));

    bench.start(request(patient()));
    bench.wakes([FetchWake::Connected(1), SENT]);
    assert!(bench.pass(29).is_empty());
    bench.wakes([FetchWake::Received(1)]);
    let doing = "while reading response header from upstream (127.0.0.1:1)";
    assert_eq!(bench.pass(1)[1], format!("Error: {limit} {doing}"));

    bench.start(request(patient()));
    bench.wakes([FetchWake::Connected(1), SENT]);
    assert!(bench.pass(29).is_empty());
    bench.wakes([FetchWake::Event(head(103))]);
    assert!(bench.pass(29).is_empty());
    bench.wakes([FetchWake::Event(head(200))]);
    assert!(bench.pass(29).is_empty());
    bench.wakes([FetchWake::Received(1)]);
    assert!(bench.pass(29).is_empty());
    assert_eq!(
        bench.pass(1),
        [
            "close".to_owned(),
            format!("Error: {limit} while reading upstream (127.0.0.1:1)"),
            "attempt 127.0.0.1:1 200 over".to_owned(),
            "failed 504".to_owned(),
            "finish".to_owned(),
        ]
    );
}

#[test]
fn no_timeout_runs_while_the_client_is_slow() {
    let mut bench = Bench::of(vec![server(1)]);
    bench.start(request(patient()));
    bench.wakes([FetchWake::Connected(1), FetchWake::Sent { bytes: 1, left: Left::Unready }]);
    assert!(bench.pass(1000).is_empty());
    bench.wakes([SENT, FetchWake::Event(head(200)), FetchWake::Paused]);
    assert!(bench.pass(1000).is_empty());
    bench.wakes([FetchWake::Resumed]);
    assert!(bench.pass(29).is_empty());
    assert_eq!(bench.pass(1).len(), 5);
}

#[test]
fn another_server_is_asked_as_nginx_asks() {
    let mut rules = patient();
    rules.next_upstream.http_404 = true;
    rules.next_upstream.http_500 = true;
    let mut bench = Bench::of(vec![server(1), server(2), server(3)]);
    bench.start(request(rules.clone()));
    let told = bench.wakes([FetchWake::Connected(1), SENT, FetchWake::Event(head(404))]);
    assert_eq!(
        told,
        ["unused 404", "close", "attempt 127.0.0.1:1 404 over", "connect 127.0.0.1:2"]
    );
    let told = bench.wakes([FetchWake::Connected(2), SENT, FetchWake::Event(head(500))]);
    assert_eq!(told.len(), 5, "500 is a failure, 404 is not: {told:?}");
    let told = bench.wakes([FetchWake::Connected(3), SENT, FetchWake::Event(head(500))]);
    assert_eq!(told, ["attempt 127.0.0.1:3 500 under way", "head 500"]);
    let group = bench.groups.iter().next().unwrap();
    let fails = group.peers().iter().map(|p| p.health().fails());
    assert_eq!(fails.collect::<Vec<_>>(), [0, 1, 0]);

    let mut bench = Bench::of(vec![server(1), server(2), server(3)]);
    bench.start(post(rules.clone(), Retain::Yes));
    let told = bench.wakes([FetchWake::Connected(1), SENT, FetchWake::Event(head(500))]);
    assert_eq!(told[1], "head 500", "a request that may not be made twice");
    bench.start(post(rules.clone(), Retain::Yes));
    let told = bench.wakes([FetchWake::ConnectFailed(111)]);
    assert_eq!(told.last().unwrap(), "connect 127.0.0.1:3", "nothing was sent");

    rules.next_upstream.non_idempotent = true;
    let told = bench.start(post(rules, Retain::Yes));
    assert_eq!(told, ["connect 127.0.0.1:3"]);
    let told = bench.wakes([FetchWake::Connected(1), SENT, FetchWake::ReceiveFailed(104)]);
    assert_eq!(
        told[0],
        "Error: recv() failed (104: Connection reset by peer) while reading response header \
         from upstream (127.0.0.1:3)"
    );
}

#[test]
fn a_body_that_was_given_back_cannot_be_sent_again() {
    for (retain, again) in [(Retain::Yes, true), (Retain::No, false)] {
        let mut rules = patient();
        rules.next_upstream.non_idempotent = true;
        let mut bench = Bench::of(vec![server(1), server(2)]);
        bench.start(post(rules, retain));
        bench.wakes([FetchWake::Connected(1)]);
        let mut out = SendChain::new(CopyPolicy::Contiguous);
        let _end = bench.fetches[0].body_mut().pull(100, &mut out);
        let told = bench.wakes([SENT, FetchWake::Broken(OriginError::ClosedBeforeHead)]);
        assert_eq!(told.last().unwrap() == "connect 127.0.0.1:2", again, "{told:?}");
        if again {
            let mut out = SendChain::new(CopyPolicy::Contiguous);
            bench.wakes([FetchWake::Connected(2)]);
            let _end = bench.fetches[0].body_mut().pull(100, &mut out);
            assert_eq!(out.contiguous().unwrap(), b"0123456789");
        }
    }
}

#[test]
fn tries_and_time_for_other_servers_are_bounded() {
    let mut rules = patient();
    rules.next_upstream_tries = 2;
    let mut bench = Bench::of(vec![server(1), server(2), server(3)]);
    bench.start(request(rules.clone()));
    bench.wakes([FetchWake::ConnectFailed(111)]);
    assert_eq!(bench.wakes([FetchWake::ConnectFailed(111)])[3], "failed 502");
    rules.next_upstream_tries = 0;
    rules.next_upstream_timeout = Duration::from_secs(3);
    let mut bench = Bench::of(vec![server(1), server(2), server(3)]);
    bench.start(request(rules));
    bench.pass(3);
    assert_eq!(bench.wakes([FetchWake::ConnectFailed(111)])[3], "failed 502");
}

#[test]
fn no_retry_follows_a_delivered_head() {
    let mut bench = Bench::of(vec![server(1), server(2)]);
    bench.start(request(patient()));
    bench.wakes([FetchWake::Connected(1), SENT, FetchWake::Event(head(200))]);
    assert_eq!(
        bench.wakes([FetchWake::Broken(OriginError::ClosedWithinBody)]),
        [
            "Error: upstream prematurely closed connection while reading upstream (127.0.0.1:1)",
            "close",
            "attempt 127.0.0.1:1 200 over",
            "failed 502",
            "finish",
        ]
    );
}

/// Requests and responds once, over any connection.
fn serve(bench: &mut Bench, link: u64) -> Vec<String> {
    let told = bench.start(request(keeping()));
    bench.wakes([FetchWake::Connected(link), SENT, FetchWake::Event(head(200)), END]);
    told
}

#[test]
fn idle_connections_serve_the_same_server_and_the_oldest_makes_room() {
    let mut bench = Bench::of(vec![server(1)]);
    assert_eq!(serve(&mut bench, 11), ["connect 127.0.0.1:1"]);
    assert_eq!(serve(&mut bench, 11), ["reuse 11"]);
    for link in [21, 22, 23] {
        bench.start(request(keeping()));
        let last = bench.fetches.len() - 1;
        bench.wake(last, FetchWake::Connected(link));
    }
    let ends: Vec<_> = (2..5)
        .map(|fetch| {
            bench.wake(fetch, SENT);
            bench.wake(fetch, FetchWake::Event(head(200)));
            bench.wake(fetch, END)[..2].join(" ")
        })
        .collect();
    assert_eq!(bench.pools.idle(), 2);
    assert_eq!(ends[2], "keep evict 21");
    assert_eq!(serve(&mut bench, 23), ["reuse 23"], "the one used last");
    assert_eq!(bench.pools.next_expiry(), Some(bench.now.mono.after(Duration::from_secs(60))));
    bench.pools.forget(23);
    bench.now.mono = bench.now.mono.after(Duration::from_secs(60));
    assert_eq!(bench.pools.expire(bench.now.mono), Some(22));
    assert_eq!((bench.pools.expire(bench.now.mono), bench.pools.next_expiry()), (None, None));
}

#[test]
fn a_connection_has_limits_of_requests_and_time() {
    let mut group = upstream(Balance::RoundRobin, vec![server(1)]);
    group.keepalive.requests = 2;
    group.keepalive.time = Duration::from_secs(50);
    let mut bench = Bench::new(group.clone());
    serve(&mut bench, 1);
    serve(&mut bench, 1);
    assert_eq!(serve(&mut bench, 2), ["connect 127.0.0.1:1"]);
    bench.now.mono = bench.now.mono.after(Duration::from_secs(50));
    assert_eq!(serve(&mut bench, 2), ["reuse 2"]);
    assert_eq!(bench.pools.idle(), 0);

    serve(&mut bench, 3);
    group.servers[0] = server(2);
    let groups = UpstreamGroups::new(&[group.clone()], Some(&bench.groups));
    assert_eq!(bench.pools.expire_unknown(&bench.groups), None);
    assert_eq!(bench.pools.expire_unknown(&groups), Some(3));
}

#[test]
fn a_lost_idle_connection_costs_only_a_new_one() {
    let mut bench = Bench::of(vec![server(1), server(2)]);
    serve(&mut bench, 1);
    serve(&mut bench, 2);
    assert_eq!(bench.start(request(keeping())), ["reuse 1"]);
    assert_eq!(bench.wakes([FetchWake::Gone]), ["connect 127.0.0.1:1"]);
    bench.wakes([FetchWake::Connected(3), SENT, FetchWake::Event(head(200)), END]);

    assert_eq!(bench.start(request(keeping())), ["reuse 2"]);
    let closed = || FetchWake::Broken(OriginError::ClosedBeforeHead);
    let told = bench.wakes([FetchWake::Connected(2), SENT, closed()]);
    assert_eq!(told[1..], ["close", "connect 127.0.0.1:2"]);
    assert!(told[0].starts_with("Info: "), "{told:?}");
    assert_eq!(bench.groups.iter().map(|g| g.peers()[1].health().fails()).sum::<u32>(), 0);
    let told = bench.wakes([FetchWake::Connected(4), SENT, closed()]);
    assert_eq!(told.last().unwrap(), "reuse 3", "a fresh one that closes is a failure");

    let mut again = Bench::of(vec![server(1)]);
    serve(&mut again, 1);
    again.start(post(keeping(), Retain::Yes));
    let told = again.wakes([FetchWake::Connected(1), SENT, closed()]);
    assert_eq!(told.last().unwrap(), "finish", "what was sent may have been done");
    serve(&mut again, 2);
    again.start(post(keeping(), Retain::Yes));
    let told = again.wakes([FetchWake::Connected(2), FetchWake::SendFailed(32)]);
    assert_eq!(told.last().unwrap(), "connect 127.0.0.1:1", "nothing was sent");
}

#[test]
fn a_connection_is_closed_unless_the_whole_request_was_sent() {
    let mut bench = Bench::of(vec![server(1)]);
    bench.start(request(keeping()));
    let told = bench.wakes([FetchWake::Connected(1), FetchWake::Event(head(200)), END]);
    assert_eq!(told[0], "close");
}

#[test]
fn the_error_stream_goes_to_the_log_and_can_spoil_the_answer() {
    let stderr = |text: &'static str| {
        FetchWake::Event(OriginEvent::Stderr(Bytes::from_static(text.as_bytes())))
    };
    let mut bench = Bench::of(vec![server(1)]);
    let mut rules = patient();
    rules.catch_stderr = Arc::new(vec![b"FATAL".as_slice().into()]);
    bench.start(request(rules.clone()));
    let told = bench.wakes([FetchWake::Connected(1), SENT, stderr("line1\nline2. \r\n")]);
    assert_eq!(
        told,
        ["Error: FastCGI sent in stderr: \"line1\nline2\" while reading response header from \
          upstream (127.0.0.1:1)"]
    );
    assert!(bench.wakes([stderr("\n")]).is_empty());
    let told = bench.wakes([stderr("a FATAL thing")]);
    assert_eq!(told[1..], ["close", "attempt 127.0.0.1:1 502 over", "failed 502", "finish"]);
    bench.start(request(rules));
    bench.wakes([FetchWake::Connected(1), SENT, FetchWake::Event(head(200))]);
    let told = bench.wakes([stderr("FATAL")]);
    let line = "Error: FastCGI sent in stderr: \"FATAL\" while reading upstream (127.0.0.1:1)";
    assert_eq!(told, [line], "too late");
}

#[test]
fn requests_queue_in_order_while_all_servers_are_busy() {
    let mut bench = Bench::new(queueing(vec![limited(1, 1)], 2));
    assert_eq!(bench.start(request(patient())), ["connect 127.0.0.1:1"]);
    assert!(bench.start(request(patient())).is_empty());
    assert!(bench.start(request(patient())).is_empty());
    assert_eq!(
        bench.start(request(patient())),
        [
            "Error: upstream queue is full while connecting to upstream (group)",
            "attempt group 503 over",
            "failed 503 after 5",
            "finish",
        ]
    );
    assert_eq!((bench.pools.queued(), bench.turns()), (2, vec![]));
    bench.wake(0, FetchWake::Connected(1));
    bench.wake(0, FetchWake::Broken(OriginError::ClosedBeforeHead));
    assert_eq!(bench.turns(), [1]);
    bench.wake(2, FetchWake::Abandoned);
    assert!(bench.start(request(patient())).is_empty(), "a newcomer does not overtake");
    assert!(bench.wake(4, FetchWake::Deadline).is_empty(), "not even when it looks");
    assert_eq!(bench.wake(1, FetchWake::Turn), ["connect 127.0.0.1:1"]);
    assert!(bench.wake(4, FetchWake::Turn).is_empty());
    bench.turns();
    bench.wake(1, FetchWake::Abandoned);
    assert_eq!(bench.turns(), [4]);
    assert_eq!(bench.wake(4, FetchWake::Turn), ["connect 127.0.0.1:1"]);
    assert_eq!((bench.pools.queued(), bench.conns()), (0, 1));
}

#[test]
fn a_request_that_waits_too_long_is_refused() {
    let mut bench = Bench::new(queueing(vec![limited(1, 1)], 2));
    bench.start(request(patient()));
    bench.start(request(patient()));
    assert!(bench.pass(4).is_empty());
    assert_eq!(bench.pass(1)[1..], ["attempt group 503 over", "failed 503 after 5", "finish"]);
    assert_eq!(bench.pools.queued(), 0);
}

#[test]
fn the_first_of_the_queue_finds_a_free_server_without_a_notice() {
    let mut servers = vec![limited(1, 1), limited(2, 1)];
    servers[1].fail_timeout = Duration::from_secs(2);
    let mut bench = Bench::new(queueing(servers, 2));
    bench.start(request(patient()));
    bench.start(request(patient()));
    // The second server failed with a time limit, and the first is busy.
    let told = bench.wake(1, FetchWake::ConnectFailed(111));
    assert_eq!(told.last().unwrap(), "attempt 127.0.0.1:2 502 over");
    bench.start(request(patient()));
    assert!(bench.pass(2).is_empty());
    bench.wake(1, FetchWake::Abandoned);
    assert_eq!(bench.turns(), [2]);
    bench.wake(2, FetchWake::Turn);
    assert_eq!(bench.pass(2), ["connect 127.0.0.1:2"]);
}

#[test]
fn a_response_that_only_another_server_may_better_shows_that_a_server_works() {
    let mut rules = patient();
    rules.next_upstream.http_404 = true;
    let mut bench = Bench::of(vec![server(1), server(2)]);
    bench.start(request(rules.clone()));
    bench.wakes([FetchWake::ConnectFailed(111)]);
    bench.wakes([FetchWake::Connected(1), SENT, FetchWake::Event(head(200)), END]);
    let fails = |bench: &Bench| {
        let group = bench.groups.iter().next().unwrap();
        group.peers().iter().map(|p| p.health().fails()).collect::<Vec<_>>()
    };
    assert_eq!(fails(&bench), [1, 0]);
    bench.pass(11);
    // It has lost weight, so that it is not the next one.
    let is_asked = (0..5).any(|_| bench.start(request(rules.clone())) == ["connect 127.0.0.1:1"]);
    assert!(is_asked);
    bench.wakes([FetchWake::Connected(2), SENT, FetchWake::Event(head(404))]);
    assert_eq!(fails(&bench), [0, 0]);
}

#[test]
fn a_place_that_the_first_cannot_use_goes_to_the_next() {
    let mut rules = patient();
    rules.next_upstream.http_404 = true;
    let mut bench = Bench::new(queueing(vec![limited(1, 1), limited(2, 1)], 9));
    bench.start(request(rules.clone()));
    bench.start(request(rules.clone()));
    bench.wake(0, FetchWake::Connected(1));
    let told = bench.wake(0, FetchWake::Event(head(404)));
    assert_eq!(told.len(), 3, "the first server has it not, the second is busy: {told:?}");
    assert!(bench.start(request(rules)).is_empty());
    assert!(bench.wake(0, FetchWake::Deadline).is_empty());
    assert_eq!(bench.turns(), [2]);
    assert_eq!(bench.wake(2, FetchWake::Turn), ["connect 127.0.0.1:1"]);
    bench.wake(1, FetchWake::Abandoned);
    assert_eq!(bench.turns(), [0]);
    assert_eq!(bench.wake(0, FetchWake::Turn)[0], "connect 127.0.0.1:2");
}

#[test]
fn without_a_client_the_application_is_aborted_unless_configured_otherwise() {
    let mut bench = Bench::of(vec![server(1)]);
    bench.start(request(patient()));
    assert_eq!(
        bench.wakes([FetchWake::Abandoned]),
        ["close", "attempt 127.0.0.1:1 0 over", "finish"]
    );
    bench.start(request(patient()));
    bench.wakes([FetchWake::Connected(1), SENT]);
    assert_eq!(bench.wakes([FetchWake::Abandoned])[0], "abort");
    let rules = OriginSettings { ignore_client_abort: true, ..keeping() };
    bench.start(request(rules.clone()));
    bench.wakes([FetchWake::Connected(1), SENT]);
    assert!(bench.wakes([FetchWake::Abandoned]).is_empty());
    assert!(bench.wakes([FetchWake::Event(head(200)), FetchWake::Event(body("x"))]).is_empty());
    assert_eq!(bench.wakes([END]), ["keep", "finish"]);
    // A body that will never be complete makes no request.
    let mut partial = request(rules);
    partial.body = Spool::new(SpoolLimits { memory: 100, file: 0 }, Retain::No);
    bench.start(partial);
    assert_eq!(bench.wakes([FetchWake::Connected(1), FetchWake::Abandoned])[0], "close");
    assert_eq!(bench.conns(), 0);
}

/// A pool of one process that may take ten seconds for a request.
fn pool() -> Bench {
    let mut process = limited(1, 1);
    process.max_fails = 0;
    let group = queueing(vec![process], 2);
    let request_timeout = Some(Duration::from_secs(10));
    Bench::new(Upstream { kind: UpstreamKind::Pool(0), request_timeout, ..group })
}

#[test]
fn a_process_of_ours_is_not_free_before_it_is_done() {
    let mut bench = pool();
    let ends = [
        END,
        FetchWake::Broken(OriginError::ClosedBeforeHead),
        FetchWake::ReceiveFailed(104),
        FetchWake::SendFailed(32),
    ];
    for end in ends {
        bench.start(request(patient()));
        let told = bench.wakes([FetchWake::Connected(1), SENT, FetchWake::Abandoned]);
        assert_eq!(told, ["linger"]);
        assert!(bench.wakes([FetchWake::Abandoned, FetchWake::Event(head(200))]).is_empty());
        let first = bench.fetches.len() - 1;
        assert!(bench.start(request(patient())).is_empty(), "it waits");
        assert_eq!((bench.conns(), bench.pools.queued()), (1, 1));
        assert_eq!(bench.wake(first, end), ["close", "finish"]);
        assert_eq!(bench.turns(), [first as u64 + 1]);
        assert_eq!(bench.wakes([FetchWake::Turn]), ["connect 127.0.0.1:1"]);
        // It was not asked yet, and is not asked any more.
        assert_eq!(bench.wakes([FetchWake::Connected(2), FetchWake::Abandoned])[0], "close");
        assert_eq!((bench.conns(), bench.pools.queued()), (0, 0));
        bench.turns();
    }
}

#[test]
fn a_process_of_ours_that_speaks_to_no_client_is_ended() {
    let mut bench = pool();
    let left = [FetchWake::Connected(1), SENT, FetchWake::Abandoned];
    bench.start(request(patient()));
    bench.wakes(left);
    assert!(bench.pass(29).is_empty(), "it may wait for another one, and take as long itself");
    assert_eq!(bench.pass(1), ["abort", "finish"]);
    for bytes in [1, 300_000] {
        bench.start(request(patient()));
        bench.wakes([FetchWake::Connected(1), SENT, FetchWake::Abandoned]);
        assert!(bench.pass(5).is_empty());
        let mut told = bench.wakes([FetchWake::Received(bytes)]);
        told.extend(bench.pass(1));
        assert_eq!(told, ["abort", "finish"]);
    }
    bench.start(request(patient()));
    assert!(bench.wakes([FetchWake::Connected(1), SENT, FetchWake::Draining]).is_empty());
    assert_eq!(bench.wakes([FetchWake::Abandoned, FetchWake::Draining]), ["abort", "finish"]);
    assert_eq!(bench.conns(), 0);
}

#[test]
fn a_process_of_ours_that_is_late_is_not_free() {
    let mut bench = pool();
    let mut rules = patient();
    rules.read_timeout = Duration::from_secs(2);
    bench.start(request(rules));
    bench.wakes([FetchWake::Connected(1), SENT]);
    let told = bench.pass(2);
    assert_eq!(told[1..], ["attempt 127.0.0.1:1 504 over", "failed 504", "linger"]);
    assert_eq!(bench.conns(), 1);
    assert_eq!(bench.wakes([END]), ["close", "finish"]);
    assert_eq!(bench.conns(), 0);
}

#[test]
fn an_address_that_variables_made_is_asked_once() {
    let mut bench = Bench::of(vec![server(1)]);
    let mut asked = request(keeping());
    asked.target = crate::PassTarget::Address(server(7).addresses[0].clone());
    assert_eq!(bench.start(asked), ["connect 127.0.0.1:7"]);
    let told = bench.wakes([FetchWake::Connected(1), SENT, FetchWake::Event(head(200)), END]);
    assert_eq!(told[0], "close", "there is no pool for it");
}

/// A request to a name.
fn named(settings: OriginSettings) -> Box<OriginRequest> {
    let mut asked = request(settings);
    asked.target = crate::PassTarget::Name(Box::new(crate::NameTarget {
        host: (*b"a.test.").into(),
        port: 81,
        servers: Arc::new(bolide_conf::model::NameServers {
            servers: Vec::new(),
            valid: None,
            ipv4: true,
            ipv6: true,
        }),
        timeout: Duration::from_secs(30),
    }));
    asked
}

#[test]
fn each_address_of_a_name_is_tried_once_in_its_order() {
    let mut bench = Bench::of(vec![server(1)]);
    assert_eq!(bench.start(named(patient())), ["resolve a.test."]);
    let found = [[127, 0, 0, 9], [127, 0, 0, 8], [127, 0, 0, 7]].map(std::net::IpAddr::from);
    let told = bench.wakes([FetchWake::Resolved(Ok(found.into()))]);
    assert!(told.contains(&"connect 127.0.0.9:81".to_owned()), "{told:?}");
    let told = bench.wakes([FetchWake::ConnectFailed(111)]);
    assert!(told.contains(&"connect 127.0.0.8:81".to_owned()), "{told:?}");
    let told = bench.wakes([FetchWake::ConnectFailed(111)]);
    assert!(told.contains(&"connect 127.0.0.7:81".to_owned()), "{told:?}");
    let told = bench.wakes([FetchWake::ConnectFailed(111)]);
    assert!(told.contains(&"failed 502".to_owned()), "{told:?}");
    assert_eq!(bench.conns(), 0);
}

#[test]
fn a_name_that_is_not_found_is_a_bad_gateway() {
    let mut bench = Bench::of(vec![server(1)]);
    bench.start(named(patient()));
    let told = bench.wakes([FetchWake::Resolved(Err("3: Host not found".to_owned()))]);
    let line = "Error: a.test could not be resolved (3: Host not found)";
    assert!(told.iter().any(|told| told.contains(line)), "{told:?}");
    assert_eq!(told[told.len() - 2..], ["failed 502", "finish"]);
}

#[test]
fn who_leaves_during_the_lookup_leaves_at_once() {
    let mut bench = Bench::of(vec![server(1)]);
    bench.start(named(patient()));
    assert_eq!(bench.wakes([FetchWake::Abandoned]), ["finish"]);
}
