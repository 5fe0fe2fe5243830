//! The invariants of the cache after all clients have left.

use bolide_cache::disk::format::Record;
use bolide_cache::{ObjectKind, Store};

use crate::assembly::AssemblyPiece;
use crate::kernel::disk::SimDisk;
use crate::pages::PageModel;

/// Checks the counters and the objects of the store.
pub(super) fn check(
    store: &std::sync::Arc<Store>,
    bytes_max: u64,
    pages: &PageModel,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let stats = store.stats();
    if (stats.fills, stats.filling_bytes) != (0, 0) {
        wrong.push(format!("{} fills of {} bytes are left", stats.fills, stats.filling_bytes));
    }
    let orphans = store.front(u16::MAX).poll_orphans().0;
    if !orphans.is_empty() {
        wrong.push(format!("no wake-up for {orphans:?}"));
    }
    let accounts = store.namespaces().stats();
    let bytes: u64 = accounts.iter().map(|account| account.bytes).sum();
    let counted: u64 = accounts.iter().map(|account| account.objects).sum();
    if bytes != store.bytes() || bytes > bytes_max || counted != stats.objects {
        wrong.push(format!(
            "{bytes} of {} bytes, at most {bytes_max}; {counted} of {} objects",
            store.bytes(),
            stats.objects
        ));
    }
    wrong.extend(contents(store).into_iter().filter_map(|(url, body, session)| {
        match AssemblyPiece::at(&url) {
            Some(piece) => (piece.source() != body).then(|| format!("not what {piece:?} was")),
            None => pages.check_stored(&body, session.as_deref()),
        }
    }));
    // Expire all objects; 256 sweeps visit all tags.
    for _ in 0..256 {
        store.sweep(100_000, u64::MAX - 1);
    }
    let rest = contents(store).len();
    if rest > 0 {
        wrong.push(format!("{rest} objects outlive time itself"));
    }
    wrong
}

/// Checks the cache files that a later server would use.
pub(super) fn check_files(disk: &SimDisk, pages: &PageModel) -> Vec<String> {
    let mut wrong = Vec::new();
    for (path, bytes) in disk.stored() {
        let Some(record) = Record::decode(bytes) else { continue };
        let body = bytes.get(record.size()..).unwrap_or_default();
        if record.kind == ObjectKind::Content && record.has_body(body) {
            let session = Some(record.session).filter(|session| !session.is_empty());
            let judged = pages.check_stored(body, session);
            wrong.extend(judged.map(|problem| format!("{path}: {problem}")));
        }
    }
    wrong
}

type Content = (String, Vec<u8>, Option<Vec<u8>>);

/// URL, body and session of each stored object.
fn contents(store: &Store) -> Vec<Content> {
    let mut found = Vec::new();
    let mut part = 0;
    while store.index().list(part, &mut |object| {
        if object.kind() == ObjectKind::Content {
            let body: Vec<u8> = object.pieces().flatten().copied().collect();
            let url = String::from_utf8_lossy(object.url()).into_owned();
            found.push((url, body, object.session().map(|session| session.text().to_vec())));
        }
    }) {
        part += 1;
    }
    found
}
