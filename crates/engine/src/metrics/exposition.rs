//! The text format of metrics: Prometheus 0.0.4, and OpenMetrics 1.0.
//!
//! Owns escaping and layout. Easiest to break: the samples of a family are contiguous, and no two
//! of them have the same labels.

use std::borrow::Cow;
use std::io::Write as _;

use super::accept::MetricsFormat;

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// It only grows from the start of the process on; its samples end in `_total`.
    Counter,
    /// It grows and falls.
    Gauge,
    /// Counts of observations up to each bound.
    Histogram,
}

impl MetricKind {
    /// The word in `# TYPE`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// The unit of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricUnit {
    /// A count.
    None,
    /// Seconds; the name ends with it.
    Seconds,
    /// Bytes; the name ends with it.
    Bytes,
}

impl MetricUnit {
    /// The word in `# UNIT`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Seconds => "seconds",
            Self::Bytes => "bytes",
        }
    }
}

/// A metric family: samples of one name with different labels.
#[derive(Clone, Copy, Debug)]
pub struct MetricFamily {
    /// The name without `_total`.
    pub name: &'static str,
    /// The type.
    pub kind: MetricKind,
    /// The unit.
    pub unit: MetricUnit,
    /// The names of the labels.
    pub labels: &'static [&'static str],
    /// One sentence.
    pub help: &'static str,
}

impl MetricFamily {
    /// The name of its samples; those of a histogram have suffixes of their own.
    #[must_use]
    pub fn sample_name(&self) -> Cow<'static, str> {
        match self.kind {
            MetricKind::Counter => Cow::Owned(format!("{}_total", self.name)),
            MetricKind::Gauge | MetricKind::Histogram => Cow::Borrowed(self.name),
        }
    }
}

/// A number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum MetricValue {
    Whole(u64),
    Real(f64),
}

impl From<u64> for MetricValue {
    fn from(value: u64) -> Self {
        Self::Whole(value)
    }
}

impl From<u32> for MetricValue {
    fn from(value: u32) -> Self {
        Self::Whole(value.into())
    }
}

impl From<f64> for MetricValue {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}

impl From<bool> for MetricValue {
    fn from(value: bool) -> Self {
        Self::Whole(value.into())
    }
}

/// A histogram: the observations of each bucket (not cumulative), and of the last, unbounded one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HistogramValue<'a> {
    /// Rising.
    pub(crate) bounds: &'a [f64],
    /// One more than bounds.
    pub(crate) counts: &'a [u64],
    pub(crate) sum: f64,
}

/// A text in progress.
#[derive(Debug)]
pub(crate) struct Exposition {
    out: Vec<u8>,
    format: MetricsFormat,
}

impl Exposition {
    pub(crate) const fn new(format: MetricsFormat) -> Self {
        Self { out: Vec::new(), format }
    }

    /// Begins a family; its samples follow.
    pub(crate) fn begin<'a>(&'a mut self, family: &'static MetricFamily) -> FamilySamples<'a> {
        let name = match self.format {
            MetricsFormat::Prometheus => family.sample_name(),
            MetricsFormat::OpenMetrics => Cow::Borrowed(family.name),
        };
        let out = &mut self.out;
        let _ = write!(out, "# HELP {name} ");
        escape(out, family.help.as_bytes(), self.format == MetricsFormat::OpenMetrics);
        let _ = writeln!(out, "\n# TYPE {name} {}", family.kind.word());
        if self.format == MetricsFormat::OpenMetrics && family.unit != MetricUnit::None {
            let _ = writeln!(out, "# UNIT {name} {}", family.unit.word());
        }
        FamilySamples { text: self, family }
    }

    /// The complete text.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        if self.format == MetricsFormat::OpenMetrics {
            self.out.extend_from_slice(b"# EOF\n");
        }
        self.out
    }
}

/// Writes the samples of one family.
#[derive(Debug)]
pub(crate) struct FamilySamples<'a> {
    text: &'a mut Exposition,
    family: &'static MetricFamily,
}

impl FamilySamples<'_> {
    /// One sample; `labels` are the values of the family's labels, in their order.
    pub(crate) fn add<const N: usize>(
        &mut self,
        labels: [&[u8]; N],
        value: impl Into<MetricValue>,
    ) -> &mut Self {
        debug_assert!(self.family.kind != MetricKind::Histogram, "those have shapes");
        let ending = if self.family.kind == MetricKind::Counter { "_total" } else { "" };
        self.line(ending, &labels, None, value.into());
        self
    }

    /// One sample for each of `rows`.
    pub(crate) fn extend<'l, const N: usize, V: Into<MetricValue>>(
        &mut self,
        rows: impl Iterator<Item = ([&'l [u8]; N], V)>,
    ) {
        for (labels, value) in rows {
            self.add(labels, value);
        }
    }

    /// One histogram.
    pub(crate) fn add_histogram<const N: usize>(
        &mut self,
        labels: [&[u8]; N],
        value: HistogramValue<'_>,
    ) -> &mut Self {
        let HistogramValue { bounds, counts, sum } = value;
        debug_assert!(bounds.len() + 1 == counts.len(), "one bucket has no bound");
        debug_assert!(bounds.is_sorted(), "bounds rise");
        let mut so_far = 0;
        for (at, count) in counts.iter().enumerate() {
            so_far += count;
            let bound = bounds.get(at).copied().unwrap_or(f64::INFINITY);
            self.line("_bucket", &labels, Some(bound), so_far.into());
        }
        self.line("_sum", &labels, None, sum.into());
        self.line("_count", &labels, None, so_far.into());
        self
    }

    fn line(&mut self, ending: &str, labels: &[&[u8]], bound: Option<f64>, value: MetricValue) {
        debug_assert!(labels.len() == self.family.labels.len(), "a value for each label");
        let format = self.text.format;
        let out = &mut self.text.out;
        out.extend_from_slice(self.family.name.as_bytes());
        out.extend_from_slice(ending.as_bytes());
        let mut before = b'{';
        for (name, value) in self.family.labels.iter().zip(labels) {
            out.push(before);
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b"=\"");
            escape(out, value, true);
            out.push(b'"');
            before = b',';
        }
        if let Some(bound) = bound {
            out.push(before);
            out.extend_from_slice(b"le=\"");
            push_bound(out, bound, format);
            out.push(b'"');
            before = b',';
        }
        if before == b',' {
            out.push(b'}');
        }
        out.push(b' ');
        match value {
            MetricValue::Whole(value) => bolide_http::digits::push_decimal(out, value),
            MetricValue::Real(value) => push_real(out, value),
        }
        out.push(b'\n');
    }
}

/// Appends `text` as UTF-8; escapes backslash and line feed, and quotes if requested.
fn escape(out: &mut Vec<u8>, text: &[u8], quotes: bool) {
    for byte in String::from_utf8_lossy(text).bytes() {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'"' if quotes => out.extend_from_slice(b"\\\""),
            byte => out.push(byte),
        }
    }
}

fn push_real(out: &mut Vec<u8>, value: f64) {
    if value.is_nan() {
        out.extend_from_slice(b"NaN");
    } else if value.is_infinite() {
        out.extend_from_slice(if value > 0.0 { b"+Inf" } else { b"-Inf" });
    } else {
        let _ = write!(out, "{value}");
    }
}

/// Appends the bound of a bucket: an integer gets a decimal point in OpenMetrics only.
fn push_bound(out: &mut Vec<u8>, bound: f64, format: MetricsFormat) {
    let is_whole = bound.is_finite() && bound.fract() == 0.0;
    push_real(out, bound);
    if is_whole && format == MetricsFormat::OpenMetrics {
        out.extend_from_slice(b".0");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Exposition, HistogramValue, MetricFamily, MetricKind, MetricUnit, MetricsFormat};

    const PLAIN: MetricFamily = MetricFamily {
        name: "a_things",
        kind: MetricKind::Counter,
        unit: MetricUnit::None,
        labels: &["one", "two"],
        help: "A \"thing\"\\ or\nmore.",
    };
    const SHAPED: MetricFamily = MetricFamily {
        name: "a_wait_seconds",
        kind: MetricKind::Histogram,
        unit: MetricUnit::Seconds,
        labels: &["one"],
        help: "Waits.",
    };
    const LONE: MetricFamily =
        MetricFamily { name: "a_level", kind: MetricKind::Gauge, labels: &[], ..PLAIN };

    fn text(format: MetricsFormat, write: impl FnOnce(&mut Exposition)) -> String {
        let mut made = Exposition::new(format);
        write(&mut made);
        String::from_utf8(made.finish()).unwrap()
    }

    #[test]
    fn both_forms_have_their_heads_and_ends() {
        let write = |made: &mut Exposition| {
            made.begin(&PLAIN).add([b"x\"\\\n", b"\xff"], 3_u64).add([b"", b""], 0_u64);
            made.begin(&LONE).add([], 0.5);
        };
        let samples = "a_things_total{one=\"x\\\"\\\\\\n\",two=\"\u{fffd}\"} 3\n\
                       a_things_total{one=\"\",two=\"\"} 0\n";
        let plain = text(MetricsFormat::Prometheus, write);
        assert_eq!(
            plain,
            format!(
                "# HELP a_things_total A \"thing\"\\\\ or\\nmore.\n# TYPE a_things_total counter\n\
                 {samples}# HELP a_level A \"thing\"\\\\ or\\nmore.\n# TYPE a_level gauge\n\
                 a_level 0.5\n"
            )
        );
        let open = text(MetricsFormat::OpenMetrics, write);
        assert!(
            open.starts_with("# HELP a_things A \\\"thing\\\"\\\\ or\\nmore.\n# TYPE a_things")
        );
        assert!(open.contains(samples) && open.ends_with("a_level 0.5\n# EOF\n"), "{open}");
    }

    #[test]
    fn a_histogram_adds_its_buckets_up() {
        let value = HistogramValue { bounds: &[0.5, 1.0], counts: &[2, 0, 5], sum: 9.25 };
        let write = |made: &mut Exposition| {
            made.begin(&SHAPED).add_histogram([b"x"], value);
        };
        let lines = |whole: &str| {
            format!(
                "a_wait_seconds_bucket{{one=\"x\",le=\"0.5\"}} 2\n\
                 a_wait_seconds_bucket{{one=\"x\",le=\"{whole}\"}} 2\n\
                 a_wait_seconds_bucket{{one=\"x\",le=\"+Inf\"}} 7\n\
                 a_wait_seconds_sum{{one=\"x\"}} 9.25\na_wait_seconds_count{{one=\"x\"}} 7\n"
            )
        };
        assert!(text(MetricsFormat::Prometheus, write).ends_with(&lines("1")));
        let open = text(MetricsFormat::OpenMetrics, write);
        assert!(open.contains("\n# UNIT a_wait_seconds seconds\n"), "{open}");
        assert!(open.ends_with(&format!("{}# EOF\n", lines("1.0"))), "{open}");
    }

    /// A line as a reader of the format understands it: name, labels with values, number.
    fn read(line: &str) -> (String, Vec<(String, String)>, f64) {
        let end = line.find(['{', ' ']).unwrap();
        let (name, mut rest) = line.split_at(end);
        let mut labels = Vec::new();
        if let Some(inner) = rest.strip_prefix('{') {
            rest = inner;
            while !rest.starts_with('}') {
                let (label, behind) = rest.split_once("=\"").unwrap();
                let mut value = String::new();
                let mut chars = behind.char_indices();
                let end = loop {
                    match chars.next().unwrap() {
                        (_, '\\') => value.push(match chars.next().unwrap().1 {
                            'n' => '\n',
                            other => other,
                        }),
                        (at, '"') => break at,
                        (_, other) => value.push(other),
                    }
                };
                labels.push((label.to_owned(), value));
                rest = behind[end + 1..].trim_start_matches(',');
            }
            rest = &rest[1..];
        }
        (name.to_owned(), labels, rest.trim().parse().unwrap())
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            one in "\\PC*|[\"\\\\\n{}=, ]*",
            two in any::<String>(),
            value in prop_oneof![any::<u64>().prop_map(|value| value as f64), any::<f64>()],
        ) {
            prop_assume!(!value.is_nan());
            for format in [MetricsFormat::Prometheus, MetricsFormat::OpenMetrics] {
                let made = text(format, |made| {
                    made.begin(&PLAIN).add([one.as_bytes(), two.as_bytes()], value);
                });
                let is_sample = |line: &&str| !line.starts_with('#') && !line.is_empty();
                let lines: Vec<_> = made.split('\n').filter(is_sample).collect();
                prop_assert_eq!(lines.len(), 1, "{}", made);
                let labels = vec![("one".to_owned(), one.clone()), ("two".to_owned(), two.clone())];
                prop_assert_eq!(read(lines[0]), ("a_things_total".to_owned(), labels, value));
            }
        }
    }
}
