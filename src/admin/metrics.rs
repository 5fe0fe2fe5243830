//! `bolide metrics`: the figures of the running server, as a location with `metrics` shows them.

use bolide_engine::RequestTallies;
use bolide_engine::metrics::{MetricsFormat, metrics_text};

use super::line_protocol::Words;
use super::{AdminDesk, CommandResult};

/// Its name on the socket.
pub(crate) const COMMAND: &str = "metrics";

pub(super) fn run(desk: &AdminDesk, words: &Words) -> CommandResult {
    let scene = desk.scene.as_ref().ok_or("no server runs here")?;
    let format = match words.has("openmetrics") {
        true => MetricsFormat::OpenMetrics,
        false => MetricsFormat::Prometheus,
    };
    let tallies = RequestTallies::new(scene.crew.posts.iter().map(bolide_worker::Post::tally));
    Ok(metrics_text(&desk.site, &tallies, bolide_io::process::now(), format))
}
