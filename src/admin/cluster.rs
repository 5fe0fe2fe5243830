//! `bolide cluster`: this node, all nodes, the newest purges; and waiting for nodes to carry out a
//! purge.

use std::fmt::Write as _;
use std::time::Duration;

use bolide_cache::Store;
use bolide_cluster::EntryMark;
use bolide_engine::explain::Json;
use bolide_engine::metrics::SharedObjectFigures;

use super::format::{count, seconds};
use super::line_protocol::Words;
use super::{AdminDesk, CommandResult};
use crate::cluster::{ClusterDesk, ClusterPeer, ClusterStatus, ExchangeStatus};

/// Its names on the socket.
pub(crate) const STATUS: &str = "cluster-status";
pub(crate) const PEERS: &str = "cluster-peers";
pub(crate) const PURGES: &str = "cluster-purges";
/// The default number of entries, and LIMIT: the most.
const ENTRIES: usize = 20;
const ENTRIES_MAX: usize = 1000;
/// How long a purge waits for nodes.
const WAIT: Duration = Duration::from_secs(10);
/// How often nodes are queried meanwhile.
const STEP: Duration = Duration::from_millis(5);

/// The version of the fields of `bolide cluster status --json`.
const SCHEMA: u64 = 1;

pub(super) fn status(desk: &AdminDesk, words: &Words) -> CommandResult {
    let cluster = desk.cluster()?;
    let (status, exchange) = (cluster.status(), cluster.exchange());
    let (namespace, node, address) = match (&status, &exchange) {
        (Some(of), _) => (&of.namespace, &of.node, &of.address),
        (None, Some(of)) => (&of.namespace, &of.node, &of.address),
        (None, None) => return Err(NO_CLUSTER.to_owned()),
    };
    if words.has("json") {
        let mut fields = vec![
            ("schema", Json::number(SCHEMA)),
            ("namespace", Json::text(namespace)),
            ("node", Json::text(node)),
            ("address", Json::text(address)),
        ];
        fields.extend(purge_fields(&status.clone().unwrap_or_default()));
        fields.push(("purges", Json::Bool(status.is_some())));
        fields.push(("exchange", exchange.as_ref().map_or(Json::Null, exchange_json)));
        return Ok(Json::Object(fields).line());
    }
    let mut out = format!("cluster    {namespace}, node {node}, {address}\n");
    match &status {
        Some(status) => write_purging(&mut out, status),
        None => out.push_str("state      no purges are shared: nothing is cached\n"),
    }
    if let Some(exchange) = &exchange {
        write_exchange(&mut out, exchange);
    }
    Ok(out.into_bytes())
}

fn write_purging(out: &mut String, status: &ClusterStatus) {
    let state = match (&status.connected, status.is_caught_up) {
        (None, _) => "alone".to_owned(),
        (Some(place), true) => format!("connected to {place}"),
        (Some(place), false) => format!("connected to {place}, catching up"),
    };
    let _ = write!(
        out,
        "state      {state}\nposition   {}\nsent       {}, {} waiting, {} overflows\n\
         received   {}\nlosses     {}\n",
        status.position,
        count(status.sent, "purge"),
        status.waiting,
        status.overflows,
        count(status.received, "purge"),
        status.losses,
    );
    if let Some(of) = status.objects {
        let state = if of.is_answering { "" } else { "; Valkey is not asked now" };
        let _ = writeln!(
            out,
            "objects    {} taken of {} asked for, {} unfit, {} late, {} offered{state}",
            of.taken, of.asked, of.unfit, of.late, of.offered
        );
    }
    for (name, text) in [("last loss", &status.last_loss), ("last fault", &status.last_fault)] {
        if let Some(text) = text {
            let _ = writeln!(out, "{name:<10} {text}");
        }
    }
}

fn write_exchange(out: &mut String, status: &ExchangeStatus) {
    if let Some(of) = status.secrets {
        let keys = if of.has_ticket_keys { "those of all nodes" } else { "this node's own" };
        let _ = write!(
            out,
            "secrets    keys of TLS tickets are {keys}; other first keys on {} nodes\n\
             orders     {}, {} with a certificate, {} taken over, {} leased here; {} in common; \
             {} of others\n",
            of.other_keys,
            count(of.orders, "order"),
            of.certificates,
            of.taken_over,
            of.leases,
            count(of.accounts, "account"),
            count(of.challenges, "challenge"),
        );
    }
    if let Some(of) = status.limits {
        let _ = writeln!(
            out,
            "limits     {}, {} sent, {} heard, {} not used",
            count(of.zones, "zone"),
            count(of.sent, "report"),
            of.received,
            of.unused
        );
    }
    let state = match &status.connected {
        Some(place) => format!("connected to {place}"),
        None => "alone".to_owned(),
    };
    let fault = status.last_fault.as_ref().map_or(String::new(), |text| format!("; {text}"));
    let _ = writeln!(out, "of these   {state}{fault}");
}

/// The message without a cluster.
const NO_CLUSTER: &str = "the server has no cluster: there is no \"cluster\" block, or it has \
                          nothing to share";

fn maybe(text: &Option<String>) -> Json {
    text.as_ref().map_or(Json::Null, Json::text)
}

fn purge_fields(status: &ClusterStatus) -> Vec<(&'static str, Json)> {
    vec![
        ("connected", maybe(&status.connected)),
        ("caught_up", Json::Bool(status.is_caught_up)),
        ("position", Json::text(status.position.to_string())),
        ("sent", Json::number(status.sent)),
        ("waiting", Json::number(status.waiting)),
        ("overflows", Json::number(status.overflows)),
        ("received", Json::number(status.received)),
        ("losses", Json::number(status.losses)),
        ("objects", status.objects.map_or(Json::Null, objects)),
        ("last_loss", maybe(&status.last_loss)),
        ("last_fault", maybe(&status.last_fault)),
    ]
}

fn exchange_json(status: &ExchangeStatus) -> Json {
    let secrets = status.secrets.map(|of| {
        Json::Object(vec![
            ("ticket_keys", Json::Bool(of.has_ticket_keys)),
            ("other_first_keys", Json::number(of.other_keys)),
            ("orders", Json::number(of.orders)),
            ("certificates", Json::number(of.certificates)),
            ("taken_over", Json::number(of.taken_over)),
            ("leases", Json::number(of.leases)),
            ("accounts", Json::number(of.accounts)),
            ("challenges", Json::number(of.challenges)),
        ])
    });
    let limits = status.limits.map(|of| {
        Json::Object(vec![
            ("zones", Json::number(of.zones)),
            ("sent", Json::number(of.sent)),
            ("heard", Json::number(of.received)),
            ("unused", Json::number(of.unused)),
        ])
    });
    Json::Object(vec![
        ("connected", maybe(&status.connected)),
        ("last_fault", maybe(&status.last_fault)),
        ("secrets", secrets.unwrap_or(Json::Null)),
        ("limits", limits.unwrap_or(Json::Null)),
    ])
}

fn objects(of: SharedObjectFigures) -> Json {
    Json::Object(vec![
        ("answering", Json::Bool(of.is_answering)),
        ("asked", Json::number(of.asked)),
        ("taken", Json::number(of.taken)),
        ("unfit", Json::number(of.unfit)),
        ("offered", Json::number(of.offered)),
        ("late", Json::number(of.late)),
    ])
}

pub(super) fn peers(desk: &AdminDesk, words: &Words) -> CommandResult {
    let cluster = desk.cluster()?;
    let peers = cluster.peers(None)?;
    let own = peers.iter().find(|peer| peer.is_self).map(|peer| peer.position);
    let state = |peer: &ClusterPeer| match () {
        () if peer.is_self => "this node",
        () if peer.silent_ms > SILENT_MS => "away",
        () if own.is_some_and(|own| peer.position < own) => "behind",
        () => "up to date",
    };
    if words.has("json") {
        let peer = |peer: &ClusterPeer| {
            Json::Object(vec![
                ("name", Json::text(&peer.name)),
                ("state", Json::text(state(peer))),
                ("position", Json::text(peer.position.to_string())),
                ("silent_ms", Json::number(peer.silent_ms)),
            ])
        };
        return Ok(Json::list(&peers, peer).line());
    }
    let mut out = String::new();
    for peer in &peers {
        let silent = seconds(peer.silent_ms / 1000);
        let _ = writeln!(
            out,
            "{}: {}, at {}, seen {silent} ago",
            peer.name.escape_debug(),
            state(peer),
            peer.position
        );
    }
    Ok(out.into_bytes())
}

/// A node that was silent for longer counts as away.
const SILENT_MS: u64 = 5000;

pub(super) fn purges(desk: &AdminDesk, words: &Words) -> CommandResult {
    let limit = match words.text("limit") {
        Some(text) => text.parse().map_err(|_| format!("\"{text}\" is not a number"))?,
        None => ENTRIES,
    };
    let entries = desk.cluster()?.purges(limit.clamp(1, ENTRIES_MAX))?;
    if words.has("json") {
        return Ok(Json::list(&entries, |entry| {
            Json::Object(vec![
                ("id", Json::text(entry.id.to_string())),
                ("node", Json::text(&entry.node)),
                ("purges", Json::list(&entry.purges, Json::text)),
            ])
        })
        .line());
    }
    let mut out = String::new();
    for entry in &entries {
        for purge in &entry.purges {
            let _ = writeln!(out, "{} {}: {purge}", entry.id, entry.node);
        }
    }
    Ok(out.into_bytes())
}

/// Waits until this many nodes, including this one, have carried out all purges of this process so
/// far.
///
/// # Errors
///
/// The timeout, with the nodes that have not.
pub(super) fn wait(cluster: &ClusterDesk, store: &Store, nodes: usize) -> Result<(), String> {
    let number = store.outbox().counts().last;
    let until = bolide_io::process::now().mono.after(WAIT);
    let is_late = || bolide_io::process::now().mono >= until;
    let carried_out = "carried out here";
    let entry: EntryMark = loop {
        let progress = cluster.progress();
        let (confirmed, position) = progress.map_err(|why| format!("{carried_out}, but {why}"))?;
        if confirmed >= number {
            break position;
        }
        if is_late() {
            return Err(format!("{carried_out}, but Valkey has not taken it yet"));
        }
        std::thread::park_timeout(STEP);
    };
    loop {
        let peers = cluster
            .peers(Some(entry))
            .map_err(|why| format!("{carried_out} and sent, but {why}"))?;
        let (have, lack): (Vec<_>, Vec<_>) =
            peers.iter().partition(|peer| peer.is_self || peer.has_entry);
        if have.len() >= nodes {
            return Ok(());
        }
        if is_late() {
            let names = lack.iter().map(|peer| peer.name.escape_debug().to_string());
            let names: Vec<_> = names.collect();
            let names = match names.is_empty() {
                true => "there are no others".to_owned(),
                false => format!("these have not: {}", names.join(", ")),
            };
            return Err(format!("{} of {nodes} nodes have it; {names}", have.len()));
        }
        std::thread::park_timeout(STEP);
    }
}
