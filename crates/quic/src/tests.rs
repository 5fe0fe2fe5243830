//! Whole connections through a simulated network.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::{any, proptest};
use quinn_proto::{ConnectionError, StreamId, VarInt};

use crate::{
    Endpoint, Lost, QuicEvent, QuicOutgoing, QuicSettings, ReadEnd, Retry, SettingsError,
    SharedKeys, fuzz, owner,
};
use net::{Early, Net, Weather, answer, server_tls};

mod net;

fn connected(net: &Net, index: usize) -> bool {
    net.clients[index].connected && net.clients[index].lost.is_none()
}

#[test]
fn a_request_is_answered_over_a_good_network() {
    let mut net = Net::new(1, &QuicSettings::default());
    let client = net.connect();
    net.run(1000);
    assert!(connected(&net, client));
    assert!(net.server.has(&QuicEvent::Connected { early: false }));
    let small = net.clients[client].ask("163");
    let large = net.clients[client].ask("3000000");
    net.run(5000);
    for (id, request) in [(small, "163"), (large, "3000000")] {
        assert!(net.clients[client].got[&id] == answer(request.as_bytes()));
        assert!(net.clients[client].finished.contains(&id));
    }
    assert!(net.server.datagrams > net.server.trains * 2, "bulk leaves in trains");
    let id = net.only();
    let addr = net.clients[client].addr;
    let conn = net.server.endpoint.conn(id).unwrap();
    assert_eq!(conn.server_name(), Some("a.example"));
    assert_eq!(conn.remote(), addr);
    assert_eq!(conn.handshake().alpn.as_deref(), Some(&b"h3"[..]));
    assert!(conn.handshake().cipher.is_some() && conn.handshake().curve.is_some());
    assert!(!conn.is_early() && !conn.is_handshaking() && !conn.is_closed());
    let stats = conn.stats();
    assert!(stats.rtt >= Duration::from_millis(20) && stats.mtu > 1400 && stats.packets_lost == 0);
    assert_eq!(net.server.endpoint.handshaking(), 0);
}

#[test]
fn bytes_survive_loss_reordering_and_doubling() {
    for seed in 0..16 {
        let mut net = Net::new(seed, &QuicSettings::default());
        net.weather = Weather { loss: seed % 12, twice: seed % 7, late: seed * 3 };
        net.segments = if seed % 2 == 0 { 1 } else { 20 };
        let client = net.connect();
        net.run(20_000);
        assert!(connected(&net, client), "seed {seed}");
        let sizes = ["1", "0", "1200", "70000", "300000", "163", "163", "5000"];
        let asked: Vec<_> = sizes.iter().map(|size| net.clients[client].ask(size)).collect();
        net.run(50_000);
        for (id, size) in asked.iter().zip(sizes) {
            let got = net.clients[client].got.get(id).cloned().unwrap_or_default();
            assert!(got == answer(size.as_bytes()), "seed {seed}, size {size}: {}", got.len());
        }
    }
}

#[test]
fn a_retry_is_asked_for_always_or_under_load() {
    let is_retry = |datagram: &Vec<u8>| datagram[0] & 0xf0 == 0xf0;
    let settings = QuicSettings { retry: Retry::Always, ..QuicSettings::default() };
    let mut net = Net::new(1, &settings);
    let client = net.connect();
    net.run(1000);
    assert!(connected(&net, client));
    assert!(is_retry(&net.server.sent[0]));
    let stream = net.clients[client].ask("10");
    net.run(1000);
    assert!(net.clients[client].finished.contains(&stream));

    let settings = QuicSettings { retry: Retry::UnderLoad(2), ..QuicSettings::default() };
    for count in [2, 4] {
        let mut net = Net::new(1, &settings);
        let clients: Vec<_> = (0..count).map(|_| net.connect()).collect();
        net.run(1000);
        assert!(clients.iter().all(|client| connected(&net, *client)));
        let asked = net.server.sent.iter().any(is_retry);
        assert_eq!(asked, count > 2, "the first two are let in without");
    }
}

#[test]
fn a_token_is_bound_to_its_address_and_its_time() {
    let settings = QuicSettings { retry: Retry::Always, ..QuicSettings::default() };
    for (wait, other_port) in [(0, true), (16_000, false)] {
        let mut net = Net::new(1, &settings);
        let client = net.connect();
        net.run(25);
        let second = net.clients[client].sent.last().unwrap().clone();
        assert!(net.clients[client].sent.len() >= 2, "the client has answered the Retry");
        let mut addr = net.clients[client].addr;
        addr.set_port(addr.port() + u16::from(other_port));
        net.clients.clear();
        net.nanos += wait * 1_000_000;
        assert_eq!(net.deliver(addr, &second, 0), None);
        assert_eq!(net.server.endpoint.live(), 0);
        assert!(!net.server.sent.is_empty(), "INVALID_TOKEN or another Retry");
    }
}

#[test]
fn a_token_that_cannot_be_decrypted_closes_whether_tokens_are_asked_for_or_not() {
    for retry in [Retry::Always, Retry::UnderLoad(2000)] {
        let asking = QuicSettings { retry: Retry::Always, ..QuicSettings::default() };
        let mut net = Net::new(1, &asking);
        let client = net.connect();
        net.run(25);
        assert!(net.clients[client].sent.len() >= 2, "the client has answered the Retry");
        assert_eq!(net.server.endpoint.live(), 0, "that is on its way");
        let settings = QuicSettings { retry, ..QuicSettings::default() };
        let keys = SharedKeys::from_secret([9; 32]);
        net.server.endpoint =
            Endpoint::new(&settings, server_tls(Early::Off), 0, &keys, net.clock).unwrap();
        net.run(1000);
        let lost = net.clients[client].lost.as_ref().map(ToString::to_string);
        assert!(lost.is_some_and(|lost| lost.contains("cannot decrypt token")), "{retry:?}");
        assert_eq!(net.server.endpoint.live(), 0);
    }
}

#[test]
fn a_token_of_the_key_before_a_reload_is_as_good_as_none() {
    let settings = QuicSettings { retry: Retry::Always, ..QuicSettings::default() };
    for (secrets, is_lost) in [(&[[9; 32]][..], false), (&[[9; 32], [9; 32]], false), (&[], false)]
        .into_iter()
        .chain([(&[[9; 32], [8; 32]][..], true)])
    {
        let mut net = Net::new(1, &settings);
        net.tokens = Some(Arc::default());
        let first = net.connect();
        net.run(1000);
        assert!(connected(&net, first));
        for secret in secrets {
            let keys = SharedKeys::from_secret(*secret);
            let tls = server_tls(Early::Off);
            net.server.endpoint.set_server_config(&settings, tls, &keys).unwrap();
        }
        let again = net.connect();
        net.run(1000);
        assert_eq!(connected(&net, again), !is_lost, "{} changes", secrets.len());
        assert_eq!(net.clients[again].lost.is_some(), is_lost, "{} changes", secrets.len());
    }
}

#[test]
fn an_unknown_version_is_answered_with_ours() {
    let mut net = Net::new(1, &QuicSettings::default());
    let addr = net.server_addr;
    let mut hello = vec![0xc0, 0xff, 0, 0, 0x99, 8, 1, 2, 3, 4, 5, 6, 7, 8, 4, 9, 9, 9, 9];
    hello.resize(1200, 0);
    net.deliver(addr, &hello, 0);
    let answer = net.server.sent.pop().unwrap();
    assert_eq!(&answer[1..5], [0; 4]);
    assert_eq!(&answer[5..19], [4, 9, 9, 9, 9, 8, 1, 2, 3, 4, 5, 6, 7, 8]);
    assert!(answer[19..].chunks(4).any(|version| version == [0, 0, 0, 1]));
    assert!(!answer[19..].chunks(4).any(|version| version[0] == 0xff), "no drafts");
    hello.truncate(1000);
    net.deliver(addr, &hello, 0);
    assert!(net.server.sent.is_empty(), "RFC 9000 §5.2.2: small packets are dropped");
}

#[test]
fn a_server_that_lost_its_state_resets_and_the_client_believes_it() {
    let mut net = Net::new(1, &QuicSettings::default());
    let client = net.connect();
    net.run(1000);
    assert!(connected(&net, client));
    let keys = net.keys.clone();
    net.server.endpoint =
        Endpoint::new(&QuicSettings::default(), server_tls(Early::Off), 0, &keys, net.clock)
            .unwrap();
    net.clients[client].ask("10");
    net.run(1000);
    assert_eq!(net.clients[client].lost, Some(ConnectionError::Reset));
    assert_eq!(net.server.endpoint.live(), 0);
}

#[test]
fn a_client_may_change_its_address() {
    let mut net = Net::new(1, &QuicSettings::default());
    let client = net.connect();
    net.run(1000);
    let first = net.clients[client].ask("1000");
    net.run(1000);
    net.clients[client].addr.set_port(6000);
    let second = net.clients[client].ask("200000");
    net.run(20_000);
    for id in [first, second] {
        assert!(net.clients[client].finished.contains(&id), "{:?}", net.clients[client].lost);
    }
    let id = net.only();
    assert_eq!(net.server.endpoint.conn(id).unwrap().remote().port(), 6000);
}

#[test]
fn every_datagram_after_the_first_flight_names_its_worker() {
    for worker in 0..4 {
        let mut net = Net::with(1, &QuicSettings::default(), Early::Off, worker);
        let client = net.connect();
        net.run(15);
        let first_flight = net.clients[client].sent.len();
        net.run(1000);
        net.clients[client].ask("10000");
        net.run(1000);
        let sent = &net.clients[client].sent;
        assert!(sent.len() > first_flight + 3);
        for (index, datagram) in sent.iter().enumerate() {
            let expected = (index >= first_flight).then_some(worker);
            assert_eq!(owner(datagram, &net.keys, 4), expected, "datagram {index}");
        }
    }
}

#[test]
fn silence_ends_a_connection_and_leaves_nothing_behind() {
    let idle_timeout = Duration::from_secs(5);
    let settings = QuicSettings { idle_timeout, ..QuicSettings::default() };
    let mut net = Net::new(1, &settings);
    let client = net.connect();
    net.run(1000);
    let id = net.only();
    assert!(net.server.endpoint.deadline(id).is_some());
    net.clients.clear();
    net.run(10_000);
    assert!(net.server.has(&QuicEvent::Lost(Lost::TimedOut)));
    assert_eq!(net.server.events.last().unwrap().1, QuicEvent::Gone);
    assert_eq!((net.server.endpoint.live(), net.server.endpoint.deadline(id)), (0, None));
    assert!(net.server.endpoint.conn(id).is_none());
    let _ = client;
}

#[test]
fn a_half_open_handshake_is_forgotten_and_never_amplifies() {
    let mut net = Net::new(1, &QuicSettings::default());
    let client = net.connect();
    net.run(5);
    let first = net.clients[client].sent.clone();
    net.clients.clear();
    net.run(20_000);
    let received: usize = first.iter().map(Vec::len).sum();
    assert!(net.server.bytes > received, "the server has answered");
    assert!(net.server.has(&QuicEvent::Lost(Lost::TimedOut)));
    // The library lets a datagram that begins within the limit exceed it.
    assert!(net.server.bytes < 3 * received + 1200, "{} to {received}", net.server.bytes);
    assert_eq!((net.server.endpoint.live(), net.server.endpoint.handshaking()), (0, 0));
}

#[test]
fn a_client_that_gives_up_in_its_first_packet_leaves_nothing_behind() {
    let mut net = Net::new(1, &QuicSettings::default());
    let client = net.connect();
    let at = net.clock.library(net.now().mono);
    net.clients[client].conn().close(at, VarInt::from_u32(0x100), Bytes::new());
    net.run(100);
    assert!(!net.clients[client].sent.is_empty(), "the server has got a packet");
    assert_eq!((net.server.endpoint.live(), net.server.endpoint.handshaking()), (0, 0));
    assert!(net.server.events.is_empty());
    assert_eq!(net.server.endpoint.library_connections(), 0);
    net.connect();
    net.run(1000);
    assert_eq!(net.server.endpoint.live(), 1);
}

#[test]
fn close_codes_reach_the_other_side() {
    let mut net = Net::new(1, &QuicSettings::default());
    let client = net.connect();
    net.run(1000);
    let (id, now) = (net.only(), net.now());
    let conn = net.server.endpoint.conn(id).unwrap();
    conn.close(now, 0x100, Bytes::from_static(b"bye"));
    assert!(conn.is_closed());
    assert!(conn.write(0, &mut Bytes::from_static(b"x")).is_err());
    assert_eq!(conn.open_uni(), None);
    net.run(2000);
    match net.clients[client].lost.take() {
        Some(ConnectionError::ApplicationClosed(close)) => {
            assert_eq!((u64::from(close.error_code), &close.reason[..]), (0x100, &b"bye"[..]));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(
        (net.server.endpoint.live(), net.server.events.last().map(|(_, e)| e)),
        (0, Some(&QuicEvent::Gone))
    );

    let client = net.connect();
    net.run(1000);
    let now = net.now();
    let at = net.clock.library(now.mono);
    net.clients[client].conn().close(at, VarInt::from_u32(0x10c), Bytes::new());
    net.run(2000);
    assert!(net.server.has(&QuicEvent::Lost(Lost::Closed(0x10c))));
    assert_eq!(net.server.endpoint.live(), 0);
}

#[test]
fn connections_beyond_the_limit_and_after_the_end_are_refused() {
    let settings = QuicSettings { conns_max: 1, ..QuicSettings::default() };
    let mut net = Net::new(1, &settings);
    let first = net.connect();
    net.run(1000);
    let second = net.connect();
    net.run(1000);
    assert!(connected(&net, first));
    let refused = |lost: &Option<ConnectionError>| match lost {
        Some(ConnectionError::ConnectionClosed(close)) => u64::from(close.error_code) == 2,
        _ => false,
    };
    assert!(refused(&net.clients[second].lost), "{:?}", net.clients[second].lost);
    net.server
        .endpoint
        .set_server_config(
            &QuicSettings::default(),
            server_tls(Early::Off),
            &SharedKeys::from_secret([7; 32]),
        )
        .unwrap();
    let third = net.connect();
    net.run(1000);
    assert!(connected(&net, third), "a reload lifts the limit");
    net.server.endpoint.stop_accepting();
    let fourth = net.connect();
    net.run(1000);
    assert!(refused(&net.clients[fourth].lost));
    let stream = net.clients[first].ask("10");
    net.run(1000);
    assert!(net.clients[first].finished.contains(&stream), "old connections go on");
}

#[test]
fn keys_are_updated_by_either_side() {
    let mut net = Net::new(1, &QuicSettings::default());
    let client = net.connect();
    net.run(1000);
    for round in 0..6 {
        if round % 2 == 0 {
            net.clients[client].conn().force_key_update();
        } else {
            let id = net.only();
            net.server.endpoint.conn(id).unwrap().update_keys();
        }
        let stream = net.clients[client].ask("20000");
        net.run(2000);
        assert!(net.clients[client].finished.contains(&stream), "round {round}");
    }
}

#[test]
fn resets_and_stops_carry_their_codes_both_ways() {
    let mut net = Net::new(1, &QuicSettings::default());
    let client = net.connect();
    net.run(1000);
    let id = net.only();
    let conn = net.clients[client].conn();
    let given_up = conn.streams().open(quinn_proto::Dir::Bi).unwrap();
    conn.send_stream(given_up).write(b"1").unwrap();
    net.run(100);
    net.clients[client].conn().send_stream(given_up).reset(VarInt::from_u32(0x10c)).unwrap();
    net.clients[client].conn().recv_stream(given_up).stop(VarInt::from_u32(0x10d)).unwrap();
    net.run(100);
    assert_eq!(net.server.resets, [(given_up.into(), 0x10c)]);
    assert!(net.server.has(&QuicEvent::Stopped(given_up.into(), 0x10d)));
    let conn = net.server.endpoint.conn(id).unwrap();
    assert!(conn.write(given_up.into(), &mut Bytes::from_static(b"x")).is_err());
    assert_eq!(conn.read(given_up.into(), 10, &mut Vec::new()), ReadEnd::Gone);

    let conn = net.clients[client].conn();
    let other = conn.streams().open(quinn_proto::Dir::Bi).unwrap();
    conn.send_stream(other).write(b"1").unwrap();
    net.run(100);
    let conn = net.server.endpoint.conn(id).unwrap();
    conn.stop(other.into(), 0x100);
    conn.reset(other.into(), 0x102);
    conn.reset(other.into(), 0x102);
    assert!(conn.finish(other.into()).is_err());
    net.run(100);
    assert_eq!(net.clients[client].stopped, [(other, 0x100)]);
    assert_eq!(net.clients[client].reset, [(other, 0x102)]);
}

#[test]
fn a_slow_reader_blocks_its_stream_and_frees_it_again() {
    let mut net = Net::new(1, &QuicSettings::default());
    let client = net.connect();
    net.run(1000);
    net.clients[client].reads = false;
    let slow = net.clients[client].ask("1000000");
    net.run(3000);
    let id = net.only();
    let key = (id.to_bits(), u64::from(slow));
    let left = net.server.writing[&key].len();
    assert!(left >= 900_000, "only the window has left: {left}");
    let conn = net.server.endpoint.conn(id).unwrap();
    assert_eq!((conn.room(slow.into()), conn.room(4) > 0), (0, true));
    net.clients[client].read_all(&[slow]);
    net.run(5000);
    assert!(net.clients[client].got[&slow] == answer(b"1000000"));
}

#[test]
fn the_server_opens_streams_and_sets_priorities() {
    let mut net = Net::new(1, &QuicSettings::default());
    let client = net.connect();
    net.run(1000);
    let id = net.only();
    let conn = net.server.endpoint.conn(id).unwrap();
    let control = conn.open_uni().unwrap();
    assert_eq!(control, 3);
    conn.set_priority(control, 10);
    assert_eq!(conn.write(control, &mut Bytes::from_static(b"settings")), Ok(8));
    assert_eq!(conn.read(control, 10, &mut Vec::new()), ReadEnd::Gone, "it is ours");
    assert!(conn.write(2, &mut Bytes::from_static(b"x")).is_err(), "it is the client's");
    assert!(conn.write(u64::MAX, &mut Bytes::from_static(b"x")).is_err());
    assert_eq!(conn.write(control, &mut Bytes::new()), Ok(0));
    net.run(1000);
    let control = StreamId::from(VarInt::from_u32(3));
    assert_eq!(net.clients[client].got[&control], b"settings");
    let conn = net.server.endpoint.conn(id).unwrap();
    while conn.open_uni().is_some() {}
}

#[test]
fn an_early_request_is_told_apart_and_never_accepted_twice() {
    let mut net = Net::with(1, &QuicSettings::default(), Early::On, 0);
    net.connect();
    net.run(1000);
    let first = net.now();
    let at = net.clock.library(first.mono);
    net.clients[0].conn().close(at, VarInt::from_u32(0), Bytes::new());
    net.run(5000);
    net.server.events.clear();

    let client = net.connect();
    assert!(net.clients[client].conn().has_0rtt(), "the client has a ticket");
    let stream = net.clients[client].ask("100");
    net.run(1000);
    let events: Vec<_> = net.server.events.iter().map(|(_, event)| event).collect();
    assert_eq!(events[0], &QuicEvent::Connected { early: true });
    assert!(events.contains(&&QuicEvent::Confirmed));
    assert_eq!(net.server.early, [u64::from(stream)]);
    assert!(net.clients[client].finished.contains(&stream));
    let late = net.clients[client].ask("100");
    net.run(1000);
    assert!(net.clients[client].finished.contains(&late));
    assert_eq!(net.server.early.len(), 1, "after the handshake nothing is early");

    let flight = net.clients[client].sent.clone();
    let at = net.clock.library(net.now().mono);
    net.clients[client].conn().close(at, VarInt::from_u32(0), Bytes::new());
    net.run(5000);
    assert_eq!(net.server.endpoint.live(), 0);
    net.clients.clear();
    net.server.events.clear();
    for datagram in &flight {
        net.deliver("10.0.0.9:999".parse().unwrap(), datagram, 0);
    }
    net.run(1000);
    assert!(!net.server.has(&QuicEvent::Connected { early: true }), "a replay is not early");
    assert_eq!(net.server.early.len(), 1);
}

#[test]
fn settings_that_do_not_fit_are_refused() {
    let net = Net::new(1, &QuicSettings::default());
    let new = |settings: &QuicSettings, tls| {
        Endpoint::new(settings, tls, 0, &net.keys, net.clock).map(|_| ())
    };
    let tls = server_tls(Early::Off);
    let settings = QuicSettings { idle_timeout: Duration::MAX, ..QuicSettings::default() };
    assert_eq!(new(&settings, tls), Err(SettingsError::OutOfBounds));
    let mut bounded = (*server_tls(Early::Off)).clone();
    bounded.max_early_data_size = 1000;
    assert_eq!(new(&QuicSettings::default(), bounded.into()), Err(SettingsError::Tls));
    let settings = QuicSettings { idle_timeout: Duration::ZERO, ..QuicSettings::default() };
    assert_eq!(new(&settings, server_tls(Early::Off)), Ok(()));
}

#[test]
fn many_connections_share_an_endpoint_and_its_handles() {
    let mut net = Net::new(3, &QuicSettings::default());
    for round in 0..3 {
        let clients: Vec<_> = (0..20).map(|_| net.connect()).collect();
        net.run(2000);
        let asked: Vec<_> = clients.iter().map(|c| net.clients[*c].ask("5000")).collect();
        net.run(2000);
        for (client, stream) in clients.iter().zip(asked) {
            assert!(net.clients[*client].finished.contains(&stream), "round {round}");
            let at = net.clock.library(net.now().mono);
            net.clients[*client].conn().close(at, VarInt::from_u32(0), Bytes::new());
        }
        net.run(5000);
        assert_eq!(net.server.endpoint.live(), 0);
        net.clients.clear();
    }
}

#[test]
fn a_stream_of_garbage_leaves_an_established_connection_alone() {
    let mut net = Net::new(1, &QuicSettings::default());
    let client = net.connect();
    net.run(1000);
    let mut prng = bolide_base::prng::Prng::new(9);
    let sent = net.clients[client].sent.clone();
    let addr = net.clients[client].addr;
    for round in 0..3000 {
        let mut datagram = sent[round % sent.len()].clone();
        for _ in 0..1 + prng.below(4) {
            let at = prng.below(datagram.len() as u64) as usize;
            datagram[at] = prng.next_u64() as u8;
        }
        datagram.truncate(prng.below(2 * datagram.len() as u64).max(1) as usize);
        net.deliver(addr, &datagram, (prng.below(4)) as u8);
    }
    let stream = net.clients[client].ask("100000");
    net.run(5000);
    assert!(net.clients[client].finished.contains(&stream));
}

#[test]
fn buffers_of_sent_trains_are_used_again() {
    let mut out = QuicOutgoing::default();
    let first = out.vacant().as_ptr();
    out.vacant().extend_from_slice(b"abc");
    assert!(out.is_empty() && out.trains().is_empty());
    out.clear();
    assert!(out.vacant().capacity() >= 3 && first != out.vacant().as_ptr());
    out.shrink(0);
    assert_eq!(out.vacant().capacity(), 0);
}

proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(40))]
    #[test]
    fn arbitrary_datagrams_never_break_an_endpoint(
        data in vec(any::<u8>(), 0..4000), real in vec((any::<usize>(), any::<u8>()), 0..4),
    ) {
        let mut net = Net::new(1, &QuicSettings::default());
        fuzz::endpoint(&mut net.server.endpoint, &data);
        let client = net.connect();
        net.run(1);
        let mut stream = Vec::new();
        for datagram in &net.clients[client].sent {
            let mut datagram = datagram.clone();
            for (at, with) in &real {
                let at = at % datagram.len();
                datagram[at] = *with;
            }
            stream.extend_from_slice(&(datagram.len() as u16).to_be_bytes());
            stream.extend_from_slice(&datagram);
        }
        let keys = net.keys.clone();
        let tls = server_tls(Early::Off);
        let mut fresh = Endpoint::new(&QuicSettings::default(), tls, 0, &keys, net.clock).unwrap();
        fuzz::endpoint(&mut fresh, &stream);
    }
}

#[test]
fn an_alert_about_an_offer_is_a_refusal_and_one_about_garbage_is_none() {
    use crate::Lost;
    // unknown_ca and no_application_protocol, of either side.
    for lost in [Lost::Aborted(0x130), Lost::Failed(0x178, String::new())] {
        assert!(lost.is_refusal(), "{lost}");
    }
    // decode_error, no alert at all, APPLICATION_ERROR (a browser that took another connection).
    for lost in [Lost::Failed(0x132, String::new()), Lost::Aborted(0), Lost::Aborted(0xc)] {
        assert!(!lost.is_refusal(), "{lost}");
    }
    assert!(!Lost::TimedOut.is_refusal() && !Lost::Closed(0x130).is_refusal());
}
