//! The `events` block. The server itself chooses how it waits for connections, so most of the block
//! has no effect.

use crate::ast::Node;
use crate::directive::{
    Args, Contexts, DirectiveForm, DirectiveSpec, accepted, block, flag, list, value,
};
use crate::reader::{ConfReader, ReadFault, ReadResult, show};
use crate::value as values;

const E: Contexts = Contexts::EVENTS;

pub(super) const TABLE: &[DirectiveSpec] = &[
    block("events", Contexts::MAIN, Args::NONE, events)
        .doc("The settings of connection processing.", "events { worker_connections 1024; }"),
    value("worker_connections", E, Args::ONE, worker_connections)
        .doc("The most open connections of a worker.", "worker_connections 10240;")
        .takes("NUMBER")
        .default("512"),
    flag("multi_accept", E, |r| &mut r.events.multi_accept)
        .doc("Without effect: a worker accepts several connections at a time.", "multi_accept on;"),
    value("use", E, Args::ONE, method)
        .doc("Without effect: the server uses the best event method.", "use epoll;")
        .takes("epoll | poll | select")
        .default("epoll"),
    accepted("accept_mutex", E, Args::ONE, DirectiveForm::Flag)
        .doc("Without effect: no lock around accepting is needed.", "accept_mutex off;"),
    accepted("accept_mutex_delay", E, Args::ONE, DirectiveForm::Millis)
        .doc("Without effect: the delay of that lock.", "accept_mutex_delay 500ms;"),
    accepted("worker_aio_requests", E, Args::ONE, DirectiveForm::Number)
        .doc("Without effect: the most asynchronous file operations.", "worker_aio_requests 32;"),
    accepted("epoll_events", E, Args::ONE, DirectiveForm::Number)
        .doc("Without effect: the most events per call.", "epoll_events 512;"),
    list("debug_connection", E, Args::ONE, debug_connection)
        .doc(
            "Clients of which error logs get lines of all levels, whatever their own is.",
            "debug_connection 127.0.0.1;",
        )
        .takes("ADDRESS | NETWORK | unix:")
        .without("none"),
];

fn events(r: &mut ConfReader, node: &mut Node) -> ReadResult {
    r.read_events()?;
    let scope = r.inner_scope(E);
    r.read_inner(node, scope);
    Ok(())
}

fn debug_connection(r: &mut ConfReader, node: &Node) -> ReadResult {
    let named = super::real_ip::clients(r, node)?;
    r.events.debug_connection.extend(named);
    Ok(())
}

fn worker_connections(r: &mut ConfReader, node: &Node) -> ReadResult {
    let Some(number) = values::number(node.arg(0)) else {
        return Err(ReadFault::Text(format!("invalid number \"{}\"", show(node.arg(0)))));
    };
    r.events.worker_connections = u32::try_from(number).unwrap_or(u32::MAX);
    Ok(())
}

fn method(_: &mut ConfReader, node: &Node) -> ReadResult {
    match node.arg(0) {
        b"epoll" | b"poll" | b"select" => Ok(()),
        other => Err(ReadFault::Text(format!("invalid event type \"{}\"", show(other)))),
    }
}
