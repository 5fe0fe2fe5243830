//! Cuts off responses whose files became shorter while they were sent.
//!
//! Owns that the log names the file, and not the client, before the connection or stream ends.

use bolide_base::{FileRange, FileRef, Segment, SlabKey};
use bolide_engine::Wake;
use bolide_io::{Io, Reset};

use crate::env::WorkerEnv;
use crate::exchange_table::Owner;
use crate::requests::Requests;
use crate::tcp::TcpConn;

/// Records that nothing was sent of a file part, in nginx's words.
pub(crate) fn record_truncated<I: Io>(env: &mut WorkerEnv<I>, range: &FileRange) {
    debug_assert!(range.len > 0, "nothing is missing of a range that was sent");
    let (name, at) = (env.io.name_of(&range.file).unwrap_or_default(), range.offset);
    let name = String::from_utf8_lossy(&name);
    let text = format!("sendfile() reported that \"{name}\" was truncated at {at}");
    env.scratch.truncated = Some(text);
}

/// As [`record_truncated`] for the first file of the chain that is too short.
pub(crate) fn record_truncated_file<I: Io>(env: &mut WorkerEnv<I>) {
    let WorkerEnv { scratch, io, .. } = env;
    let short = scratch.chain.segments().iter().find_map(|segment| match segment {
        Segment::File(range) => {
            let end = range.offset + range.len;
            let is_short = io.stat(&range.file).is_ok_and(|now| now.size < end);
            is_short.then(|| range.clone())
        }
        Segment::Inline(..) | Segment::Bytes(_) => None,
    });
    if let Some(range) = short {
        record_truncated(env, &range);
    }
}

/// nginx's message for a short read.
pub(crate) fn read_short(io: &mut impl Io, file: &FileRef, want: usize) -> String {
    let name = io.name_of(file).unwrap_or_default();
    format!("pread() read only 0 of {want} from \"{}\"", String::from_utf8_lossy(&name))
}

/// Closes a connection that cannot be written to any more.
pub(crate) fn close_dead<I: Io>(requests: &mut Requests<I>, key: SlabKey<TcpConn>) {
    if let Some(text) = requests.env.scratch.truncated.take() {
        let mut users = Vec::new();
        requests.clients.users(Owner::Tcp(key), &mut users);
        for user in users {
            requests.step(SlabKey::from_bits(user), Wake::FileTruncated(text.clone()));
        }
    }
    requests.close(key, Reset::Yes);
}

/// Cuts off the responses whose files were found too short while they were pulled. A page
/// continues after such a part, or breaks off, as after any part that breaks off.
#[inline]
pub(crate) fn cut<I: Io>(requests: &mut Requests<I>) {
    if !requests.exchanges.truncated.is_empty() {
        cut_some(requests);
    }
}

#[cold]
fn cut_some<I: Io>(requests: &mut Requests<I>) {
    for (key, text) in std::mem::take(&mut requests.exchanges.truncated) {
        let root = requests.exchanges.root(key).map_or(key, |(root, _)| root);
        debug_assert!(!text.is_empty(), "the log says which file it was");
        requests.step(key, Wake::FileTruncated(text));
        let page = requests.exchanges.live.get_mut(root).filter(|_| root != key);
        if page.is_some_and(|live| live.exchange.as_parent().breaks_off()) {
            // Its end is not the client's doing.
            requests.step(root, Wake::SendTimeout);
        }
    }
    debug_assert!(requests.exchanges.truncated.is_empty(), "an answer that ends reads no file");
}
