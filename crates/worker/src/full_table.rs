//! What gives way to a new connection when `worker_connections` is reached.

use bolide_base::SlabKey;
use bolide_conf::model::LogLevel;
use bolide_io::Io;

use crate::quic_conn::QuicConn;
use crate::worker::Worker;

/// LIMIT: idle connections of one kind that are compared to find the one that has waited longest.
pub(crate) const IDLE_COMPARED: usize = 256;

/// Counts a new connection against `worker_connections`, as those over stream sockets.
#[cold]
pub(crate) fn admit_quic<I: Io>(worker: &mut Worker<I>, key: SlabKey<QuicConn>) {
    debug_assert!(
        worker.requests.clients.quic.conns.get(key).is_some(),
        "a connection that is counted is in the table"
    );
    if worker.requests.is_full(1) && !make_place(worker) {
        let env = &mut worker.requests.env;
        env.log_server(LogLevel::Alert, "worker_connections are not enough");
        worker.requests.close_quic(key);
    }
}

/// Ends a fill without a client, or the connection that has been without a request longest; false
/// if there is none.
pub(crate) fn make_place<I: Io>(worker: &mut Worker<I>) -> bool {
    let (origins, env, exchanges) = worker.requests.upstream();
    if origins.end_last_unwaited(env, exchanges) {
        return true;
    }
    let now = worker.requests.env.now.mono;
    let by_tcp = worker.requests.clients.tcp.find_idle(now).map(|(time, _)| time);
    match worker.requests.clients.quic.find_idle(now) {
        Some((time, key)) if by_tcp.is_none_or(|other| other < time) => {
            worker.requests.close_quic(key);
            true
        }
        _ => worker.shed_idle(),
    }
}
