//! Figures of the server for Prometheus and for whatever else reads its text formats. Every figure
//! is listed in [metrics.md](../metrics.md).

use crate::ast::Node;
use crate::choice::chosen;
use crate::directive::{Args, Contexts, DirectiveSpec, own};
use crate::model::Handler;
use crate::reader::{ConfReader, ReadResult};

pub(super) const TABLE: &[DirectiveSpec] = &[own(
    "metrics",
    Contexts::LOCATION,
    Args::ONE,
    metrics,
)
.doc(
    "Serves the figures of all workers, as Prometheus' text or as OpenMetrics. Requests are \
         counted by server and location where a location has it. A location that every client may \
         read is warned of.",
    "metrics on;",
)
.takes("on | off")
.without("off")];

fn metrics(r: &mut ConfReader, node: &Node) -> ReadResult {
    if chosen(node, &[("on", true), ("off", false)])? {
        r.scope.handler = Handler::Metrics;
    }
    Ok(())
}
