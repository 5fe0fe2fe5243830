//! Choices, compared with those that nginx 1.30 made with the same groups.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bolide_base::Instant;
use bolide_base::prng::Prng;
use bolide_conf::Template;
use bolide_conf::model::{Balance, Upstream, UpstreamId, UpstreamServer};

use super::{BalanceCursor, PeerChoice, Scales};
use crate::health::Lease;
use crate::tests::support::{limited, server, unix, upstream, weighted};
use crate::{Group, LinkPools, UpstreamGroups};

struct Bench {
    groups: UpstreamGroups,
    group: Arc<Group>,
    pools: LinkPools,
    prng: Prng,
    now: Instant,
    /// The id of the server that clients are bound to.
    bound: Vec<u8>,
}

impl Bench {
    fn new(upstream: Upstream) -> Self {
        let groups = UpstreamGroups::new(&[upstream], None);
        Self {
            group: groups.group(UpstreamId(0)).unwrap(),
            groups,
            pools: LinkPools::new(0),
            prng: Prng::new(7),
            now: Instant::from_nanos(3_600_000_000_000),
            bound: Vec::new(),
        }
    }

    fn scales<'a>(&'a mut self, affinity: &'a [u8]) -> Scales<'a> {
        self.group = self.groups.group(UpstreamId(0)).unwrap();
        Scales {
            group: &self.group,
            pools: &mut self.pools,
            prng: &mut self.prng,
            now: self.now,
            affinity,
            bound: &self.bound,
        }
    }

    /// Index of the server chosen for one request; it stays busy as long as the lease lives.
    fn hold(&mut self, affinity: &[u8]) -> Option<(usize, Lease)> {
        match self.scales(affinity).choose(&mut BalanceCursor::default()) {
            PeerChoice::Peer(index, lease) => Some((index, lease)),
            PeerChoice::Busy | PeerChoice::NoServer => None,
        }
    }

    fn pick(&mut self, affinity: &[u8]) -> usize {
        self.hold(affinity).map_or(usize::MAX, |(index, _)| index)
    }

    /// All servers that one request tries until none is left.
    fn ask_all(&mut self, affinity: &[u8]) -> Vec<usize> {
        let mut cursor = BalanceCursor::default();
        let mut asked = Vec::new();
        while let PeerChoice::Peer(index, _) = self.scales(affinity).choose(&mut cursor) {
            asked.push(index);
        }
        asked
    }

    fn fail(&mut self, index: usize) -> bool {
        self.scales(b"").record_failure(index)
    }

    fn later(&mut self, seconds: u64) {
        self.now = self.now.after(Duration::from_secs(seconds));
    }
}

fn down(server: UpstreamServer) -> UpstreamServer {
    UpstreamServer { down: true, ..server }
}

fn three() -> Vec<UpstreamServer> {
    vec![server(9301), weighted(9302, 3), server(9303)]
}

fn hashed(consistent: bool) -> Balance {
    Balance::Hash { key: Template::text(b"k"), consistent }
}

#[test]
fn weights_five_one_one_are_spread_as_nginx_spreads_them() {
    let servers = vec![weighted(1, 5), server(2), server(3)];
    let mut bench = Bench::new(upstream(Balance::RoundRobin, servers));
    let order: Vec<_> = (0..14).map(|_| bench.pick(b"")).collect();
    assert_eq!(order, [0, 0, 1, 0, 2, 0, 0, 0, 0, 1, 0, 2, 0, 0]);
}

#[test]
fn requests_that_ask_everybody_leave_the_turns_where_nginx_leaves_them() {
    let mut bench =
        Bench::new(upstream(Balance::RoundRobin, vec![server(9301), server(9302), server(9303)]));
    for _ in 0..4 {
        assert_eq!(bench.ask_all(b""), [0, 1, 2]);
        assert_eq!(bench.ask_all(b""), [2, 1, 0]);
    }
    let order: Vec<_> = (0..8).map(|_| bench.pick(b"")).collect();
    assert_eq!(order, [0, 1, 2, 0, 1, 2, 0, 1]);
}

#[test]
fn ip_hash_sends_networks_where_nginx_sends_them() {
    let expected = [
        ("1.2.3.4", 1, 0),
        ("1.2.3.99", 1, 0),
        ("10.0.0.1", 0, 0),
        ("192.168.1.7", 2, 2),
        ("8.8.8.8", 1, 0),
        ("127.0.0.1", 0, 0),
        ("203.0.113.9", 1, 0),
        ("198.51.100.77", 1, 2),
        ("172.16.5.5", 1, 2),
        ("2001:db8::1", 0, 0),
        ("2001:db8::2", 1, 2),
        ("fe80::1:2:3", 2, 2),
    ];
    let mut all = Bench::new(upstream(Balance::IpHash, three()));
    let mut servers = three();
    servers[1].down = true;
    let mut two = Bench::new(upstream(Balance::IpHash, servers));
    for (address, with_all, without_second) in expected {
        let octets = match address.parse().unwrap() {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        assert_eq!(all.pick(&octets), with_all, "{address}");
        assert_eq!(two.pick(&octets), without_second, "{address} without the second");
    }
}

const KEYS: [&str; 15] = [
    "a",
    "b",
    "c",
    "hello",
    "world",
    "/index.php",
    "user42",
    "x1",
    "x2",
    "x3",
    "x4",
    "x5",
    "x6",
    "x7",
    "x8",
];

fn by_key(balance: Balance, servers: Vec<UpstreamServer>) -> Vec<usize> {
    let mut bench = Bench::new(upstream(balance, servers));
    KEYS.iter().map(|key| bench.pick(key.as_bytes())).collect()
}

#[test]
fn hash_sends_keys_where_nginx_sends_them() {
    let servers = |second| vec![server(9301), second, server(9303)];
    let all = by_key(hashed(false), servers(weighted(9302, 3)));
    assert_eq!(all, [1, 1, 1, 0, 1, 0, 1, 2, 1, 2, 1, 1, 1, 0, 0]);
    let without = by_key(hashed(false), servers(down(weighted(9302, 3))));
    assert_eq!(without, [2, 0, 0, 0, 0, 0, 2, 2, 2, 2, 0, 2, 0, 0, 0]);
}

#[test]
fn hash_consistent_sends_keys_where_nginx_sends_them() {
    let servers = |second| vec![server(9301), second, unix("/tmp/ups/run/a.sock")];
    let all = by_key(hashed(true), servers(weighted(9302, 3)));
    assert_eq!(all, [2, 0, 2, 0, 1, 0, 1, 1, 1, 1, 1, 2, 1, 1, 1]);
    let without = by_key(hashed(true), servers(down(weighted(9302, 3))));
    assert_eq!(without, [2, 0, 2, 0, 0, 0, 2, 0, 0, 2, 0, 2, 0, 2, 0]);
    for (before, after) in all.iter().zip(&without) {
        assert!(*before == 1 || before == after, "only the keys of the lost server move");
    }
}

#[test]
fn a_hash_without_a_key_takes_turns() {
    for consistent in [false, true] {
        let mut bench = Bench::new(upstream(hashed(consistent), vec![server(1), server(2)]));
        assert_eq!([bench.pick(b""), bench.pick(b""), bench.pick(b"")], [0, 1, 0]);
    }
}

#[test]
fn least_conn_takes_the_least_busy_for_its_weight_and_turns_among_equals() {
    let servers = vec![weighted(1, 2), server(2), server(3)];
    let mut bench = Bench::new(upstream(Balance::LeastConn, servers));
    let held: Vec<_> = (0..8).map(|_| bench.hold(b"").unwrap()).collect();
    let counts = |index| held.iter().filter(|(chosen, _)| *chosen == index).count();
    assert_eq!((counts(0), counts(1), counts(2)), (4, 2, 2));
    drop(held);
    // All idle: round robin by weight.
    let order: Vec<_> = (0..8).map(|_| bench.pick(b"")).collect();
    assert_eq!(order.iter().filter(|index| **index == 0).count(), 4);
}

#[test]
fn chance_follows_weights_and_the_less_busy_of_two_is_taken() {
    let servers = vec![weighted(1, 3), server(2)];
    let mut bench = Bench::new(upstream(Balance::Random { two: false }, servers));
    let first = (0..4000).filter(|_| bench.pick(b"") == 0).count();
    assert!((2800..3200).contains(&first), "{first} of 4000");

    let servers = vec![server(1), server(2)];
    let mut bench = Bench::new(upstream(Balance::Random { two: true }, servers));
    let held: Vec<_> = (0..10).map(|_| bench.hold(b"").unwrap()).collect();
    assert_eq!(held.iter().filter(|(index, _)| *index == 0).count(), 5);
}

#[test]
fn every_way_to_choose_asks_everybody_once_and_then_the_backups() {
    let key = Balance::Hash { key: Template::text(b"k"), consistent: false };
    let ring = Balance::Hash { key: Template::text(b"k"), consistent: true };
    let ways = [
        Balance::RoundRobin,
        Balance::LeastConn,
        Balance::IpHash,
        key,
        ring,
        Balance::Random { two: false },
        Balance::Random { two: true },
    ];
    for balance in ways {
        let backup = UpstreamServer { backup: true, ..server(4) };
        let servers = vec![server(1), backup, down(server(2)), server(3), weighted(5, 2)];
        let mut bench = Bench::new(upstream(balance.clone(), servers));
        for key in 0..50_u8 {
            let mut asked = bench.ask_all(&[key; 4]);
            assert_eq!(asked.pop(), Some(4), "{balance:?}: the backup comes last");
            asked.sort_unstable();
            assert_eq!(asked, [0, 2, 3], "{balance:?}: each that is not down, once");
        }
    }
}

#[test]
fn a_server_that_failed_too_often_is_probed_by_one_request() {
    let shaky = UpstreamServer { max_fails: 2, ..server(1) };
    let mut bench = Bench::new(upstream(Balance::RoundRobin, vec![shaky, server(2)]));
    assert!(!bench.fail(0), "once is not twice");
    assert!(bench.ask_all(b"").contains(&0));
    assert!(bench.fail(0));
    assert_eq!(bench.ask_all(b""), [1]);
    bench.later(10);
    assert_eq!(bench.ask_all(b""), [1], "until the time has passed, not when it ends");
    bench.later(1);
    let (index, lease) = loop {
        let held = bench.hold(b"").unwrap();
        if held.0 == 0 {
            break held;
        }
    };
    assert_eq!(index, 0);
    assert_eq!(bench.ask_all(b""), [1], "one request finds out, the others wait");
    lease.health().record_success();
    assert!(bench.ask_all(b"").contains(&0), "it lives");
}

#[test]
fn the_only_server_is_never_left_alone_and_one_that_never_counts_neither() {
    let mut bench = Bench::new(upstream(Balance::RoundRobin, vec![server(1)]));
    assert!(!bench.fail(0) && bench.pick(b"") == 0);
    let tireless = UpstreamServer { max_fails: 0, ..server(1) };
    let mut bench = Bench::new(upstream(Balance::RoundRobin, vec![tireless, server(2)]));
    assert!(!bench.fail(0) && bench.ask_all(b"").contains(&0));
}

#[test]
fn a_full_server_is_not_asked_and_a_full_group_is_busy() {
    let servers = vec![limited(1, 1), limited(2, 2)];
    let mut bench = Bench::new(upstream(Balance::RoundRobin, servers));
    let held: Vec<_> = (0..3).map(|_| bench.hold(b"").unwrap()).collect();
    assert!(matches!(bench.scales(b"").choose(&mut BalanceCursor::default()), PeerChoice::Busy));
    bench.fail(0);
    bench.fail(1);
    assert!(matches!(
        bench.scales(b"").choose(&mut BalanceCursor::default()),
        PeerChoice::NoServer
    ));
    drop(held);
    bench.later(11);
    assert!(bench.hold(b"").is_some());
}

#[test]
fn a_server_that_fails_gets_less_until_it_recovers() {
    let mut servers = vec![weighted(1, 8), weighted(2, 8)];
    servers[0].max_fails = 8;
    let mut bench = Bench::new(upstream(Balance::RoundRobin, servers));
    for _ in 0..7 {
        bench.fail(0);
    }
    let early: Vec<_> = (0..8).map(|_| bench.pick(b"")).collect();
    assert!(early.iter().filter(|index| **index == 0).count() < 4, "{early:?}");
    let late: Vec<_> = (0..100).map(|_| bench.pick(b"")).collect();
    assert!(late.iter().filter(|index| **index == 0).count() >= 47);
}

#[test]
fn what_was_learned_of_a_server_outlives_a_reload() {
    let group = upstream(Balance::RoundRobin, vec![server(1), server(2)]);
    let mut bench = Bench::new(group.clone());
    let held = bench.hold(b"").unwrap();
    bench.fail(1);
    let mut changed = group;
    changed.servers.insert(0, server(3));
    bench.groups = UpstreamGroups::new(&[changed], Some(&bench.groups));
    let group = bench.groups.group(UpstreamId(0)).unwrap();
    let peers = group.peers();
    let conns: Vec<_> = peers.iter().map(|peer| peer.health().conns()).collect();
    let fails: Vec<_> = peers.iter().map(|peer| peer.health().fails()).collect();
    assert_eq!((conns, fails), (vec![0, 1, 0], vec![0, 0, 1]));
    drop(held);
    let group = bench.groups.group(UpstreamId(0)).unwrap();
    assert_eq!(group.conns(), 0);
}

/// A bench whose servers have these weights, and their number from 1 on as id.
fn numbered(weights: &[u32]) -> Bench {
    let servers = weights.iter().enumerate().map(|(at, weight)| UpstreamServer {
        weight: *weight,
        route: Some((at + 1).to_string().as_bytes().into()),
        ..server(9001 + at as u16)
    });
    Bench::new(upstream(Balance::RoundRobin, servers.collect()))
}

/// As nginx 1.30.6 chose: `U` is a client that is bound to no server, a digit one that is.
#[test]
fn a_bound_client_takes_the_turn_of_its_server_unless_it_had_the_last_one() {
    let rows: [(&[u32], &str, &str); 7] = [
        (
            &[1, 1, 1, 1, 1],
            "UUUU11UU2311U142U34UU2U32U3U23253U55UU2U",
            "1234115223114142534512332531232534551421",
        ),
        (
            &[1, 1, 1],
            "U22UUUU32UU3UUUU3U33U1U3UU221UU32UU131UU",
            "1223131321231231323311232122133321113122",
        ),
        (
            &[1, 1],
            "1UUU2U1UU1UUU1UU12U211U1UU11UU12U1UUU1U2",
            "1212211211212121121211212111211211212122",
        ),
        (
            &[1, 4],
            "UU12UUUUUUU1UUUU22UUUUUU1U2UU21UUUUUUU22",
            "2212222122212222222122221222221222212222",
        ),
        (
            &[2, 2, 3, 2, 3],
            "31331U543UU154UUU4U21355U14UUU4U3U24545U",
            "3133155432215435243213554143524335245451",
        ),
        (
            &[4, 3, 5],
            "U32UUUUUUU2231UUU3UUUU3UU33222U12UUUU211",
            "3321312313223131331213321332221123313211",
        ),
        (
            &[1, 3, 5],
            "UUU1UUU3UUUUU232UUUU31UUU1221U2UUU2U31UU",
            "3231323323231232333231323122132333233132",
        ),
    ];
    for (weights, clients, expected) in rows {
        let mut bench = numbered(weights);
        let chosen = clients.chars().map(|client| {
            bench.bound = if client == 'U' { Vec::new() } else { vec![client as u8] };
            (bench.pick(b"") + 1).to_string()
        });
        assert_eq!(chosen.collect::<String>(), expected, "{weights:?} {clients}");
    }
}

#[test]
fn every_method_chooses_for_clients_without_a_usable_server() {
    let hash = |consistent| Balance::Hash { key: Template::text(b"x"), consistent };
    let methods = [
        Balance::RoundRobin,
        Balance::LeastConn,
        Balance::IpHash,
        hash(false),
        hash(true),
        Balance::Random { two: false },
        Balance::Random { two: true },
    ];
    for balance in methods {
        let drained =
            |at: u16| UpstreamServer { drain: true, route: Some([b'd'; 1].into()), ..server(at) };
        let down = UpstreamServer { down: true, route: Some(b"down"[..].into()), ..server(9003) };
        let servers = vec![drained(9001), server(9002), down];
        let mut bench = Bench::new(upstream(balance.clone(), servers));
        for (bound, expected) in [("", 1), ("d", 0), ("down", 1), ("other", 1)] {
            bench.bound = bound.into();
            for _ in 0..8 {
                assert_eq!(bench.pick(b"key"), expected, "{balance:?} {bound}");
            }
        }
        bench.bound = b"d".into();
        assert_eq!(bench.ask_all(b"key"), [0, 1], "{balance:?}: each is tried once");
    }
}

#[test]
fn a_drained_server_alone_is_for_its_clients() {
    let alone = UpstreamServer { drain: true, route: Some(b"d"[..].into()), ..server(9001) };
    let mut bench = Bench::new(upstream(Balance::RoundRobin, vec![alone]));
    assert_eq!(bench.pick(b""), usize::MAX);
    bench.bound = b"d".into();
    assert_eq!(bench.pick(b""), 0);
}

#[test]
fn a_backup_is_for_its_clients_once_no_other_server_is_left() {
    let backup = |at: u16, id: &str| UpstreamServer {
        backup: true,
        route: Some(id.as_bytes().into()),
        ..server(at)
    };
    let servers = vec![server(9001), backup(9002, "a"), backup(9003, "b")];
    let mut bench = Bench::new(upstream(Balance::RoundRobin, servers));
    bench.bound = b"b".into();
    assert_eq!(bench.ask_all(b""), [0, 2, 1]);
}

#[test]
fn a_busy_server_is_left_by_its_clients() {
    let limited = UpstreamServer { max_conns: 1, route: Some(b"a"[..].into()), ..server(9001) };
    let mut bench = Bench::new(upstream(Balance::RoundRobin, vec![limited, server(9002)]));
    bench.bound = b"a".into();
    let held = bench.hold(b"");
    assert_eq!(held.as_ref().map(|(index, _)| *index), Some(0));
    assert_eq!(bench.pick(b""), 1);
    drop(held);
    assert_eq!(bench.pick(b""), 0);
}
