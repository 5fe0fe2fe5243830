//! Responses of upstream servers stored as files: the common part of `fastcgi_store*` and its kin.

use crate::ast::Node;
use crate::directive::{Args, Contexts, DirectiveSpec, value};
use crate::model::{StorePlace, ZoneUse};
use crate::reader::{ConfReader, ReadFault, ReadResult, show};

const HSL: Contexts = Contexts::HSL;

/// The rows of a family.
macro_rules! rows {
    ($family:literal) => {
        &[
            value(concat!($family, "_store"), HSL, Args::ONE, store)
                .doc(
                    "Where whole responses with status 200 are stored as files: where the \
                     request's path leads, or at a path with variables.",
                    concat!($family, "_store /var/mirror$uri;"),
                )
                .takes("on | off | TEXT")
                .default("off"),
            value(concat!($family, "_store_access"), HSL, Args::between(1, 3), |r, node| {
                r.origin().store_access = super::dav::access(node)?;
                Ok(())
            })
            .doc(
                "The permissions of those files, and of directories made for them.",
                concat!($family, "_store_access user:rw group:rw all:r;"),
            )
            .takes("user:r | user:rw | group:r | group:rw | all:r | all:rw…")
            .default("user:rw"),
        ]
    };
}

pub(super) const FASTCGI: &[DirectiveSpec] = rows!("fastcgi");
pub(super) const PROXY: &[DirectiveSpec] = rows!("proxy");
pub(super) const UWSGI: &[DirectiveSpec] = rows!("uwsgi");
pub(super) const SCGI: &[DirectiveSpec] = rows!("scgi");

fn store(r: &mut ConfReader, node: &Node) -> ReadResult {
    let place = match node.arg(0) {
        b"off" => {
            r.origin().store = None;
            return Ok(());
        }
        b"on" => StorePlace::Mapped,
        b"" => return Err(ReadFault::Text("empty path".to_owned())),
        word => StorePlace::Path(r.template(word)?),
    };
    exclude(r, node, b"store", b"cache")?;
    r.origin().store = Some(place);
    // What an outer block says of the cache gives way.
    r.cache().zone = ZoneUse::Off;
    Ok(())
}

/// Refuses a directive in a block in which the same family's `other` is on.
pub(super) fn exclude(r: &mut ConfReader, node: &Node, own: &[u8], other: &[u8]) -> ReadResult {
    let stem = node.name().strip_suffix(own).unwrap_or_default();
    let other = [stem, other].concat();
    if r.scope.said.contains(&other) {
        let text = format!(
            "\"{}\" directive is incompatible with \"{}\"",
            show(node.name()),
            show(&other)
        );
        return Err(ReadFault::Text(text));
    }
    r.scope.said.insert(node.name().to_vec());
    Ok(())
}
