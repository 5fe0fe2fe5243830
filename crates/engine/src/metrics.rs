//! The figures of the server, in the formats of Prometheus and OpenMetrics.
//!
//! Workers count in their tallies; names come from the configuration alone, never from a request,
//! and their number is bounded. A scrape adds up what all workers counted and takes no lock that a
//! request waits for.

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
