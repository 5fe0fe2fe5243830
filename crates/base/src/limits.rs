//! Every bound that is not a directive, named, with its unit, in one place.

/// Streams a peer may have open on one HTTP/2 or HTTP/3 connection.
pub const STREAMS_PER_CONN_MAX: u32 = 128;
/// Bytes of one decoded request head (names, values and 32 per field), as nginx's four 8k buffers.
pub const HEAD_SIZE_MAX: usize = 32 * 1024;
/// Fields in one request head, as nginx's `max_headers`.
pub const FIELDS_MAX: usize = 1000;
/// Bytes of one HTTP/2 frame that we accept (RFC 9113 §4.2: the initial value).
pub const H2_FRAME_SIZE_MAX: usize = 16 * 1024;
/// Bytes a request body may run ahead of its reader, per stream.
pub const BODY_WINDOW: u32 = 64 * 1024;
/// Bytes that the body of a request may run ahead of its reader that collects it.
pub const COLLECTED_WINDOW: u32 = 1024 * 1024;
/// Bytes that the client of an HTTP/3 connection may send ahead of us, beside those in streams that
/// wait for us.
pub const QUIC_CONN_WINDOW: u32 = 1024 * 1024;
/// Bytes of the HPACK and QPACK tables we keep for a peer, and the most we use of the peer's.
pub const FIELD_TABLE_SIZE: usize = 4096;
/// Bytes one receive call takes from a TCP socket.
pub const RECEIVE_SIZE: usize = 64 * 1024;
/// Bytes pulled from bodies for one connection in one turn.
pub const SEND_PER_TURN: usize = 128 * 1024;
/// Bytes of bodies that filters take for one connection in one turn; what they give of them may be
/// far less, or nothing.
pub const FILTERED_PER_TURN: u64 = 1024 * 1024;
/// Paths that one worker's table of open files remembers.
pub const FILES_KNOWN_MAX: usize = 16 * 1024;
/// Descriptors that one worker's table of open files keeps open.
pub const FILES_OPEN_MAX: usize = 1024;
/// Bytes of the largest file whose content is kept in memory.
pub const FILE_CONTENT_MAX: u64 = 256 * 1024;
/// Bytes of file contents that one worker keeps in memory.
pub const FILES_CONTENT_MAX: u64 = 64 * 1024 * 1024;
/// Bytes of compressed forms of files that one worker keeps in memory.
pub const VARIANTS_SIZE_MAX: u64 = 32 * 1024 * 1024;
/// Directories that one worker has watched for changes of the files that it knows.
pub const DIRECTORIES_WATCHED_MAX: usize = 4096;
/// Entries of a directory that is listed; a larger one is not.
pub const ENTRIES_LISTED_MAX: usize = 1 << 20;
/// Connections of one worker that are not bounded by `worker_connections`.
pub const CONNS_MAX: u32 = 1 << 20;
/// Connections of one worker to upstream servers.
pub const LINKS_MAX: u32 = 1 << 18;
/// Fills of one worker that no client waits for.
pub const UNWAITED_FILLS_MAX: usize = 64;
/// Those of them from one upstream.
pub const UNWAITED_FILLS_PER_ORIGIN_MAX: usize = 32;
/// Exchanges in flight on one worker.
pub const EXCHANGES_MAX: u32 = 1 << 18;
/// Readiness reports handled in one turn.
pub const READY_PER_TURN: usize = 512;
/// Connections accepted from one listener in one turn.
pub const ACCEPTS_PER_TURN: usize = 64;
/// Descriptors that are kept from clients, so that logs are opened again and configurations read
/// however many clients there are.
pub const DESCRIPTORS_RESERVED: u64 = 32;
/// Deadlines handled in one turn.
pub const DEADLINES_PER_TURN: usize = 1024;
/// Steps that one match of a regular expression may take, of 20 to 60 ns: an item that is tried,
/// or 16 bytes that one goes through.
pub const MATCH_STEPS_MAX: u32 = 1_000_000;
/// Bytes gone through and items tried, at most, in one match of an expression of the configuration
/// that is not counted; what most matches do is a small part of it.
pub const MATCH_QUICK_MAX: u32 = 8_000_000;
/// The same, for an attempt at least, where so much is left.
pub const MATCH_ATTEMPT: u32 = 1_000_000;
/// The nesting depth of variable evaluation, as in nginx.
pub const VARIABLE_DEPTH_MAX: u8 = 100;
/// Internal redirects of one request, as nginx's ten cycles.
pub const INTERNAL_REDIRECTS_MAX: u8 = 10;
/// Faults in a row, late answers among them, after which Valkey is not asked for shared objects
/// until it answers in time again.
pub const SHARED_FAULTS_MAX: u32 = 3;
/// Milliseconds between two looks whether it does.
pub const SHARED_REST_MS: u64 = 1000;
/// Milliseconds for which nothing is offered to a Valkey that has no memory left.
pub const SHARED_FULL_MS: u64 = 10_000;
/// Questions about shared objects that wait for the cluster's thread, and those that it deals with
/// at once; as many offers, and as many ends of leases that wait, come besides.
pub const SHARED_ORDERS_MAX: usize = 1024;
/// Questions among them that wait for what another node fetches.
pub const SHARED_HELD_MAX: usize = 256;
/// Milliseconds that a question may wait for the cluster's thread to get to it, or as long as
/// Valkey may take if that is longer.
pub const SHARED_DESK_MS: u64 = 100;
/// Bytes of shared objects that are offered, from the end of their fill until Valkey has them, with
/// the copies that sending takes. A larger one is offered alone.
pub const SHARED_OFFERED_MAX: u64 = 64 * 1024 * 1024;
/// Copies of the body of an object that sending takes: the record, the command, and its bytes.
pub const SHARED_COPIES: u64 = 3;
/// Milliseconds that an object stays in Valkey at most.
pub const SHARED_KEEP_MAX_MS: u64 = 7 * 24 * 3600 * 1000;
/// Milliseconds that it stays there what a page varies by.
pub const SHARED_VARY_KEEP_MS: u64 = 24 * 3600 * 1000;
/// Milliseconds between two looks for what another node fetches: at first, doubled each time, at
/// most.
pub const SHARED_LOOK_MS: (u64, u64) = (25, 200);
/// Milliseconds that an offer waits until other nodes have received the purges before its fill, or
/// that a lookup waits until this node has.
pub const SHARED_PURGE_WAIT_MS: u64 = 100;
/// Milliseconds between two checks whether they have.
pub const SHARED_PURGE_STEP_MS: u64 = 5;
/// Milliseconds that connections without a request yet survive the order to drain.
pub const DRAIN_GRACE_MS: u64 = 2000;
/// Bytes of the head of a response of Magento, whose tags may be 1 MiB.
pub const MAGENTO_HEAD_MAX: usize = 1024 * 1024 + 64 * 1024;
/// Milliseconds that one turn of a worker may last before the watchdog logs it.
pub const STAND_MS: u64 = 5000;
/// Milliseconds that workers may take to stop; the process exits without the others.
pub const STOP_MS: u64 = 4000;
/// Certificates that a client may send beside its own, to build the chain to an authority.
pub const CLIENT_CHAIN_MAX: usize = 32;
/// Bytes of a client's own certificate; variables hold several forms of it.
pub const CLIENT_CERT_SIZE_MAX: usize = 16 * 1024;
/// Words of a path into a database of addresses (`geoip2`).
pub const GEO_PATH_MAX: usize = 16;
/// Numbers among them, each of which may be an index or a key.
pub const GEO_NUMBERS_MAX: usize = 4;
