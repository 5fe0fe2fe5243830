//! Names of servers that are answered, not answered, and answered otherwise.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bolide_base::Instant;
use bolide_conf::model::{Balance, PeerAddress, Upstream, UpstreamId, UpstreamServer};

use super::{NameVerdict, UpstreamNames};
use crate::groups::{Group, UpstreamGroups, UpstreamPeer};
use crate::tests::support::{by_name, resolved, server, upstream};

fn at(seconds: u64) -> Instant {
    Instant::from_nanos(seconds * 1_000_000_000)
}

/// `server app.test:80 resolve`
fn named() -> UpstreamServer {
    by_name("app.test:80", 0)
}

fn group(servers: Vec<UpstreamServer>) -> Upstream {
    resolved(upstream(Balance::RoundRobin, servers))
}

fn found(last: &[u8]) -> NameVerdict {
    NameVerdict::Found(last.iter().map(|last| [10, 0, 0, *last].into()).collect())
}

fn now(groups: &UpstreamGroups) -> Arc<Group> {
    groups.group(UpstreamId(0)).unwrap()
}

/// The last octets or the ports of all peers, primaries and backups.
fn peers(groups: &UpstreamGroups) -> (Vec<u16>, Vec<u16>) {
    let group = now(groups);
    let number = |peer: &UpstreamPeer| match &peer.address {
        PeerAddress::Inet(SocketAddr::V4(at)) if at.port() == 80 => at.ip().octets()[3].into(),
        PeerAddress::Inet(at) => at.port(),
        PeerAddress::Unix(_) => 0,
    };
    let of = |range: std::ops::Range<usize>| group.peers()[range].iter().map(number).collect();
    (of(group.primaries()), of(group.backups()))
}

#[test]
fn each_name_is_asked_for_by_one_worker_and_again_when_its_answer_is_old() {
    let groups = UpstreamGroups::new(&[group(vec![named(), server(7)])], None);
    let mut names = UpstreamNames::claim(&groups, at(5));
    assert_eq!(UpstreamNames::claim(&groups, at(5)).next_due(), None, "claimed before");
    assert_eq!(names.next_due(), Some(at(5)));
    assert!(names.take_due(at(4)).is_none());
    let (number, target) = names.take_due(at(5)).unwrap();
    assert_eq!((&*target.host, target.timeout), (&b"app.test"[..], Duration::from_secs(2)));
    assert!(names.take_due(at(9)).is_none(), "it is being asked for");
    assert_eq!(peers(&groups), (vec![7], vec![]));
    assert_eq!(names.handle_verdict(number, &found(&[1, 2, 1]), at(30)), None);
    assert_eq!(peers(&groups), (vec![7, 1, 2], vec![]), "each address once");
    assert_eq!(names.next_due(), Some(at(30)));
    assert!(names.take_due(at(29)).is_none() && names.take_due(at(30)).is_some());
}

#[test]
fn only_a_name_that_is_not_there_loses_its_addresses() {
    let groups = UpstreamGroups::new(&[group(vec![named()])], None);
    let mut names = UpstreamNames::claim(&groups, at(5));
    names.handle_verdict(0, &found(&[1]), at(6));
    let failed = NameVerdict::Failed("2: Server failure".to_owned());
    let line = names.handle_verdict(0, &failed, at(7)).unwrap();
    assert_eq!(line, "app.test could not be resolved (2: Server failure)");
    assert_eq!(peers(&groups), (vec![1], vec![]));
    let missing = NameVerdict::NotFound("3: Host not found".to_owned());
    let line = names.handle_verdict(0, &missing, at(8)).unwrap();
    assert_eq!(line, "app.test could not be resolved (3: Host not found)");
    assert_eq!(peers(&groups), (vec![], vec![]));
}

#[test]
fn a_peer_that_stays_is_the_same_and_stands_where_it_stood() {
    let groups = UpstreamGroups::new(&[group(vec![named()])], None);
    let mut names = UpstreamNames::claim(&groups, at(5));
    names.handle_verdict(0, &found(&[1, 2, 3]), at(6));
    let before = now(&groups);
    let held = before.peers()[1].lease().unwrap();
    names.handle_verdict(0, &found(&[4, 3, 2]), at(7));
    assert_eq!(peers(&groups), (vec![2, 3, 4], vec![]));
    let after = now(&groups);
    assert_eq!(after.peers()[0].number, before.peers()[1].number);
    assert_eq!(after.peers()[0].health().conns(), 1);
    assert!(!before.has_number(after.peers()[2].number), "a new one has a new number");
    assert!(after.version > before.version);
    drop(held);
    assert_eq!(after.conns(), 0);
    names.handle_verdict(0, &found(&[2, 4, 3]), at(8));
    assert_eq!(now(&groups).version, after.version, "another order is no change");
}

#[test]
fn a_reload_takes_over_what_was_found_for_the_same_name() {
    let old = UpstreamGroups::new(&[group(vec![named()])], None);
    UpstreamNames::claim(&old, at(5)).handle_verdict(0, &found(&[1, 2]), at(6));
    let changed = group(vec![UpstreamServer { weight: 4, ..named() }, server(7)]);
    let new = UpstreamGroups::new(&[changed], Some(&old));
    assert_eq!(peers(&new), (vec![7, 1, 2], vec![]));
    assert_eq!(now(&new).peers()[1].number, now(&old).peers()[0].number);
    assert_eq!(now(&new).peers()[1].weight, 4);
    assert!(now(&new).version > now(&old).version);
    let other = UpstreamServer { name: "other.test".into(), ..named() };
    let other = UpstreamGroups::new(&[group(vec![other])], Some(&new));
    assert_eq!(peers(&other), (vec![], vec![]));
    let fixed = UpstreamGroups::new(&[group(vec![server(7)])], Some(&new));
    assert_eq!(now(&fixed).peers()[0].number, now(&new).peers()[0].number);
}

#[test]
fn backups_are_those_of_backup_lines() {
    let backup = UpstreamServer { backup: true, name: "b:80".into(), ..named() };
    let groups = UpstreamGroups::new(&[group(vec![backup, named()])], None);
    let mut names = UpstreamNames::claim(&groups, at(5));
    names.handle_verdict(0, &found(&[9]), at(6));
    names.handle_verdict(1, &found(&[1]), at(6));
    assert_eq!(peers(&groups), (vec![1], vec![9]));
}

#[test]
fn two_lines_of_one_name_have_peers_of_their_own() {
    let groups = UpstreamGroups::new(&[group(vec![named(), named()])], None);
    let mut names = UpstreamNames::claim(&groups, at(5));
    for line in [0, 1, 0] {
        names.handle_verdict(line, &found(&[1]), at(6));
    }
    names.handle_verdict(0, &found(&[1, 2]), at(7));
    let group = now(&groups);
    let mut numbers: Vec<u32> = group.peers().iter().map(|peer| peer.number).collect();
    assert_eq!(numbers.len(), 3);
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 3);
}
