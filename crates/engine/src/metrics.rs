//! The metrics of the server, in the formats of Prometheus and OpenMetrics.
//!
//! Workers count in their tallies. Label values come from the configuration alone, never from a
//! request, so their number is bounded. A scrape adds up the tallies of all workers and takes no
//! lock that a request waits for.

pub(crate) mod accept;
pub(crate) mod exposition;
pub mod families;
mod gather;
pub(crate) mod process;
pub(crate) mod rows;
mod service;
pub(crate) mod slow;

pub use accept::MetricsFormat;
pub use exposition::{MetricFamily, MetricKind, MetricUnit};
pub use gather::metrics_text;
pub use process::{
    AcmeFigures, ClusterFigures, OrderFigures, PoolFigures, ProcessFigures, ReloadFigures,
    SharedFigures, SharedObjectFigures,
};
pub use service::{EventCount, ServiceCounts};
