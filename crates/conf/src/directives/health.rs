//! Whether the server is alive and wants requests, for orchestrators and balancers.

use crate::ast::Node;
use crate::choice::chosen;
use crate::directive::{Args, Contexts, DirectiveSpec, own};
use crate::model::{Handler, HealthProbe};
use crate::reader::{ConfReader, ReadResult};

pub(super) const TABLE: &[DirectiveSpec] = &[own("health", Contexts::LOCATION, Args::ONE, health)
    .doc(
        "Answers a probe with 200 and a word. `alive` always does: a process that gives no answer \
         has to be started again. `ready` answers 503 from `bolide drain` and the first signal to \
         quit on: it is to get no new requests.",
        "health ready;",
    )
    .takes("alive | ready | off")
    .without("off")];

fn health(r: &mut ConfReader, node: &Node) -> ReadResult {
    let words =
        [("alive", Some(HealthProbe::Alive)), ("ready", Some(HealthProbe::Ready)), ("off", None)];
    if let Some(probe) = chosen(node, &words)? {
        r.scope.handler = Handler::Health(probe);
    }
    Ok(())
}
