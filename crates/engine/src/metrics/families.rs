//! Every metric: names, types, units, labels and meanings.
//!
//! Tests compare the documentation and the dashboard with this table.

use super::exposition::{MetricFamily, MetricKind, MetricUnit};

const fn family(
    name: &'static str,
    kind: MetricKind,
    unit: MetricUnit,
    labels: &'static [&'static str],
    help: &'static str,
) -> MetricFamily {
    MetricFamily { name, kind, unit, labels, help }
}

macro_rules! table {
    ($($id:ident: $kind:ident $unit:ident $name:literal $labels:tt $help:literal;)*) => {
        $(
            #[doc = $help]
            pub(crate) static $id: MetricFamily =
                family($name, MetricKind::$kind, MetricUnit::$unit, &$labels, $help);
        )*

        /// All families, in output order.
        pub static FAMILIES: &[&MetricFamily] = &[$(&$id),*];
    };
}

table! {
    BUILD_INFO: Gauge None "bolide_build_info" ["version"]
        "1, with the version of the server.";
    CONFIGURATION: Gauge None "bolide_config_generation" []
        "The number of the configuration in force; the first is 1.";
    RELOADS: Counter None "bolide_config_reloads" ["result"]
        "Reloads by their result: success, or failure where the new configuration was refused.";
    RELOAD_GOOD: Gauge None "bolide_config_last_reload_successful" []
        "1 unless the last reload was refused or taken back.";
    RELOAD_GOOD_AT: Gauge Seconds "bolide_config_last_reload_success_timestamp_seconds" []
        "When a configuration was last put in force; the start counts.";
    RELOAD_FAILED_AT: Gauge Seconds "bolide_config_last_reload_failure_timestamp_seconds" []
        "When a configuration was last refused or taken back; 0 if none was.";
    RELOADS_TAKEN_BACK: Counter None "bolide_config_reloads_taken_back" []
        "Configurations that reload_watch took back, as more failed under them than before.";
    RELOAD_WATCHED: Gauge Seconds "bolide_config_watched_until_timestamp_seconds" []
        "Until when reload_watch watches the configuration in force; 0 if it does not.";
    CERTIFICATES: Gauge Seconds "bolide_certificate_not_after_timestamp_seconds" ["server", "file"]
        "When the certificate of a server expires.";
    ACME_ISSUED: Counter None "bolide_acme_certificates_issued" []
        "Certificates that issuers sent since the start.";
    ACME_FAILED: Gauge None "bolide_acme_failed_attempts" []
        "Attempts that failed since the last success of their orders.";
    ACME_ORDERS: Gauge None "bolide_acme_orders" ["state"]
        "Certificates that issuers are asked for: valid, missing (or expired), and those of either \
         whose last attempt failed (failing) or that the issuer revoked (revoked).";
    ACME_NEXT: Gauge Seconds "bolide_acme_next_attempt_timestamp_seconds" []
        "When an issuer is asked next; 0 if no certificate is ordered.";
    CLUSTER_CONNECTED: Gauge None "bolide_cluster_connected" []
        "1 while this node of a cluster is connected to Valkey, 0 while it is alone.";
    CLUSTER_WAITING: Gauge None "bolide_cluster_purges_waiting" []
        "Purges that wait to be sent to other nodes.";
    CLUSTER_LOSSES: Counter None "bolide_cluster_losses" []
        "How often all that is cached was dropped, as purges may have been missed.";
    CLUSTER_OBJECTS: Counter None "bolide_cluster_objects" ["event"]
        "Misses that Valkey was asked about (asked), pages of other nodes that were taken (taken), \
         objects that were of no use (unfit), objects of this node that Valkey took (offered), and \
         commands or questions without an answer in time (late).";
    CLUSTER_PURGES: Counter None "bolide_cluster_purges" ["direction"]
        "Purges of this process that other nodes can hear of (sent), and those of others that it \
         carried out (received).";
    ACCEPTED: Counter None "bolide_connections_accepted" []
        "Client connections that were accepted.";
    HANDLED: Counter None "bolide_connections_handled" []
        "Accepted connections that were not closed at once for want of room.";
    SETTLED: Counter None "bolide_connections_settled" ["protocol"]
        "Connections by protocol: counted when it is known, or as unknown at an end before that.";
    CONNECTIONS: Gauge None "bolide_connections" ["protocol", "state"]
        "Open connections (active), those that read a head (reading) or are idle (waiting), and \
         requests that are answered (writing).";
    RECEIVED: Counter None "bolide_http_requests_received" ["protocol"]
        "Requests whose head was read or refused, of all servers.";
    REQUESTS: Counter None "bolide_http_requests" ["server", "location", "code_class", "protocol"]
        "Requests that are over, by the server and location that answered.";
    DURATION: Histogram Seconds "bolide_http_request_duration_seconds" ["server"]
        "Time from the complete head of a request to the last byte of its response.";
    BYTES_IN: Counter Bytes "bolide_http_request_bytes" ["server"]
        "Bytes of requests, heads included.";
    BYTES_OUT: Counter Bytes "bolide_http_response_bytes" ["server"]
        "Bytes of responses, heads included.";
    HANDSHAKES: Counter None "bolide_tls_handshakes" ["transport", "version", "resumed"]
        "TLS handshakes of clients that were completed.";
    HANDSHAKES_FAILED: Counter None "bolide_tls_handshake_failures" ["transport", "cause"]
        "TLS handshakes of clients that failed: refused by either side, or abandoned (garbage, \
         or left without a word).";
    DATAGRAMS: Counter None "bolide_quic_datagrams" ["direction"]
        "UDP datagrams of QUIC, received or sent.";
    DATAGRAM_BYTES: Counter Bytes "bolide_quic_datagram_bytes" ["direction"]
        "Bytes of these datagrams.";
    CLOSED_SENT: Counter None "bolide_quic_closed_datagrams_sent" []
        "Datagrams that QUIC connections had sent when they ended.";
    CLOSED_LOST: Counter None "bolide_quic_closed_packets_lost" []
        "Packets that QUIC connections had lost when they ended.";
    ROUND_TRIPS: Counter None "bolide_quic_closed_connections" []
        "QUIC connections with a complete handshake that have ended.";
    ROUND_TRIP_SECONDS: Counter Seconds "bolide_quic_closed_round_trip_seconds" []
        "Sum of the smoothed round trips of QUIC connections when they ended.";
    CACHE_REQUESTS: Counter None "bolide_cache_requests" ["kind", "space", "result"]
        "Requests by what a part of the cache did for them: hit, stale, miss or bypass.";
    CACHE_DECISIONS: Counter None "bolide_cache_decisions" ["result", "reason"]
        "The same of all parts by reason, in the words of `bolide explain`.";
    CACHE_BYTES: Gauge Bytes "bolide_cache_space_bytes" ["kind", "space"]
        "Bytes of a part of the cache in memory.";
    CACHE_OBJECTS: Gauge None "bolide_cache_space_objects" ["kind", "space"]
        "Objects and markers of a part of the cache in memory.";
    CACHE_LIMIT: Gauge Bytes "bolide_cache_memory_limit_bytes" []
        "How many bytes of memory the cache may take.";
    CACHE_FILLS: Gauge None "bolide_cache_fills" []
        "Responses on their way into the cache.";
    CACHE_LOOKUPS: Counter None "bolide_cache_lookups" ["result"]
        "Look-ups in the cache, those of workers' own tables included as far as reported: hit, \
         stale, miss, join (another request fetches it) or pass.";
    CACHE_INSERTED: Counter None "bolide_cache_inserted_objects" []
        "Objects, and markers of what is not to be kept, that were put into the cache.";
    CACHE_EVICTED: Counter None "bolide_cache_evicted_objects" []
        "Objects that had to leave the cache for others.";
    CACHE_RECALLED: Counter None "bolide_cache_recalled_objects" []
        "Objects that were loaded from disk.";
    CACHE_PURGES: Counter None "bolide_cache_purges" []
        "Purges of any kind.";
    UPSTREAM_REQUESTS: Counter None "bolide_upstream_requests" ["upstream", "peer"]
        "Requests that were sent to a server of an upstream group.";
    UPSTREAM_FAILURES: Counter None "bolide_upstream_failures" ["upstream", "peer"]
        "Failures of a server of an upstream group, as max_fails counts them.";
    UPSTREAM_ACTIVE: Gauge None "bolide_upstream_active_requests" ["upstream", "peer"]
        "Requests that a server of an upstream group handles now.";
    UPSTREAM_UP: Gauge None "bolide_upstream_up" ["upstream", "peer"]
        "1 if a server of an upstream group is chosen for requests; 0 if it is down or has failed.";
    UPSTREAM_QUEUE: Gauge None "bolide_upstream_queued_requests" ["upstream"]
        "Requests that wait for a place at a server of a group.";
    POOL_UP: Gauge None "bolide_php_pool_up" ["pool"]
        "1 if a pool of PHP takes requests.";
    POOL_CHILDREN: Gauge None "bolide_php_pool_children" ["pool"]
        "Processes of a pool that run scripts.";
    POOL_CHILDREN_MAX: Gauge None "bolide_php_pool_children_limit" ["pool"]
        "How many processes of a pool may run scripts.";
    POOL_ENDED: Counter None "bolide_php_pool_unexpected_ends" ["pool"]
        "Processes of a pool that ended though they should not have.";
    WORKERS: Gauge None "bolide_workers" []
        "Workers.";
    WORKER_TURNS: Counter None "bolide_worker_turns" ["worker"]
        "Turns of a worker's loop.";
    WORKER_LAG: Gauge Seconds "bolide_worker_loop_lag_seconds" ["worker"]
        "By how much a worker was late for the last deadline that it met.";
    WORKER_STALLS: Counter None "bolide_worker_stalls" []
        "How often the watchdog found a worker in one turn for too long.";
    MEMORY: Gauge Bytes "bolide_memory_bytes" ["owner"]
        "Memory by owner: cache (its objects), fills (responses on their way into it).";
    CPU: Counter Seconds "process_cpu_seconds" []
        "Time of all cores that the process used, in seconds.";
    FDS: Gauge None "process_open_fds" []
        "Open file descriptors.";
    FDS_MAX: Gauge None "process_max_fds" []
        "How many file descriptors may be open.";
    RESIDENT: Gauge Bytes "process_resident_memory_bytes" []
        "Resident memory.";
    VIRTUAL: Gauge Bytes "process_virtual_memory_bytes" []
        "Address space.";
    STARTED: Gauge Seconds "process_start_time_seconds" []
        "When the process started, in seconds since 1970.";
}
