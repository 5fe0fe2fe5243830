//! Metrics labels of locations, and the queue of spans.

use std::sync::Arc;

use bolide_conf::model::{Handler, Http, LocationConf, LocationId, Matcher, RewriteOp};
use bolide_conf::regex::LetterCase;

use super::Site;
use crate::metrics::process::SharedFigures;
use crate::metrics::rows::{RowNames, server_label};
use crate::tracing::queue::SpanQueue;

/// The label of requests that no location answered.
const SERVER_ITSELF: &str = "(server)";

impl Site {
    /// Gives the site the metrics of the process. Requests are counted by location if a location
    /// has `metrics` or `bolide_console`, or if reloads are watched.
    #[must_use]
    pub fn with_figures(mut self, figures: &SharedFigures) -> Self {
        self.figures = figures.clone();
        let config = self.config.clone();
        let Some(http) = config.http.as_ref().filter(|_| self.counts_requests()) else {
            return self;
        };
        let mut names = figures.names();
        for server in &http.servers {
            let name = server_label(&server.primary_name).into();
            let mut left = vec![(server.root, SERVER_ITSELF.into())];
            while let Some((id, label)) = left.pop() {
                self.name_location(http, id, (&name, &label), &mut names, &mut left);
            }
        }
        drop(names);
        self
    }

    /// Gives the site a queue of spans.
    #[must_use]
    pub fn with_spans(mut self, spans: Option<Arc<SpanQueue>>) -> Self {
        self.spans = spans;
        self
    }

    /// The queue of spans, if there is one.
    #[must_use]
    pub fn spans(&self) -> Option<&SpanQueue> {
        self.spans.as_deref()
    }

    /// Gives a location its row, and adds nested ones to `left` with their labels.
    fn name_location(
        &mut self,
        http: &Http,
        id: LocationId,
        (server, label): (&Arc<str>, &Arc<str>),
        names: &mut RowNames,
        left: &mut Vec<(LocationId, Arc<str>)>,
    ) {
        let conf = http.location(id);
        if let Some(location) = self.locations.get_mut(id.index()) {
            location.row = Some(names.row(server, label));
            location.notes_end = true;
        }
        // An `if` counts as the same location.
        let tests = conf.rewrite.iter().filter_map(|op| match op {
            RewriteOp::If { location, .. } => *location,
            _ => None,
        });
        let except = conf.except.as_ref().map(|except| except.location);
        left.extend(tests.chain(except).map(|inner| (inner, label.clone())));
        // The first of several locations with one name gets the first row.
        for &inner in conf.nested.iter().rev() {
            let inner_conf = http.location(inner);
            let own = match inner_conf.matcher {
                Matcher::Root | Matcher::If => label.clone(),
                _ => location_label(inner_conf).into(),
            };
            left.push((inner, own));
        }
    }

    /// Whether requests are counted by location.
    #[must_use]
    pub(crate) fn counts_requests(&self) -> bool {
        let is_watched = !self.config.main.reload_watch.is_zero();
        self.serves_metrics() || is_watched || self.figures.counts_requests()
    }

    /// Whether a location has `metrics` or `bolide_console`.
    #[must_use]
    pub fn serves_metrics(&self) -> bool {
        self.http().is_some_and(serves_metrics)
    }

    /// The metrics that all configurations of the process share.
    pub(crate) const fn figures(&self) -> &SharedFigures {
        &self.figures
    }
}

/// Whether a location has `metrics` or `bolide_console`.
fn serves_metrics(http: &Http) -> bool {
    let serves = |of: &Handler| matches!(of, Handler::Metrics | Handler::Console);
    http.locations.iter().any(|location| serves(&location.handler))
}

/// The arguments of `location`.
pub(crate) fn location_label(location: &LocationConf) -> String {
    let name = String::from_utf8_lossy(&location.name);
    match &location.matcher {
        Matcher::Exact(_) => format!("= {name}"),
        Matcher::Prefix { no_regex: true, .. } => format!("^~ {name}"),
        Matcher::Regex(regex) if regex.case() == LetterCase::Sensitive => format!("~ {name}"),
        Matcher::Regex(_) => format!("~* {name}"),
        Matcher::Root | Matcher::If | Matcher::Prefix { .. } | Matcher::Named(_) => {
            name.into_owned()
        }
    }
}
