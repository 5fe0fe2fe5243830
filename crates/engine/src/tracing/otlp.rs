//! Encodes spans in the protobuf of OTLP 1.x (`opentelemetry/proto/trace/v1/trace.proto`).
//!
//! Owns the wire format of the few messages that an exporter sends; texts are converted to UTF-8,
//! which protobuf requires of a `string`.

/// The field `spans` of `ScopeSpans`; each span of a batch is encoded as one.
const SPANS: u32 = 2;

/// The properties of a new span.
#[derive(Clone, Copy, Debug)]
pub struct SpanFacts<'a> {
    /// The trace id.
    pub trace: [u8; 16],
    /// The span id.
    pub span: [u8; 8],
    /// The id of the parent span, if known.
    pub parent: Option<[u8; 8]>,
    /// The `tracestate` of the parent.
    pub state: &'a [u8],
    /// Its name.
    pub name: &'a [u8],
    /// Nanoseconds since 1970.
    pub started: u64,
    /// Nanoseconds since 1970; not before `started`.
    pub ended: u64,
    /// Whether its status is an error.
    pub is_error: bool,
}

/// A value of an attribute.
#[derive(Clone, Copy, Debug)]
pub enum AttributeValue<'a> {
    /// A text.
    Text(&'a [u8]),
    /// A number.
    Number(i64),
}

/// A span in progress.
#[derive(Debug, Default)]
pub struct SpanWriter {
    bytes: Vec<u8>,
}

impl SpanWriter {
    /// A span without attributes.
    #[must_use]
    pub fn new(facts: &SpanFacts<'_>) -> Self {
        debug_assert!(facts.started <= facts.ended, "a span ends behind its beginning");
        let mut bytes = Vec::with_capacity(512);
        push_bytes(&mut bytes, 1, &facts.trace);
        push_bytes(&mut bytes, 2, &facts.span);
        if !facts.state.is_empty() {
            push_text(&mut bytes, 3, facts.state);
        }
        if let Some(parent) = facts.parent {
            push_bytes(&mut bytes, 4, &parent);
        }
        push_text(&mut bytes, 5, facts.name);
        // SPAN_KIND_SERVER
        push_number(&mut bytes, 6, 2);
        push_fixed64(&mut bytes, 7, facts.started);
        push_fixed64(&mut bytes, 8, facts.ended);
        if facts.is_error {
            let mut status = Vec::new();
            // STATUS_CODE_ERROR
            push_number(&mut status, 3, 2);
            push_bytes(&mut bytes, 15, &status);
        }
        // Sampled; and whether the parent is remote is known, and true if there is one.
        let flags: u32 = 0x101 | if facts.parent.is_some() { 0x200 } else { 0 };
        push_key(&mut bytes, 16, 5);
        bytes.extend_from_slice(&flags.to_le_bytes());
        Self { bytes }
    }

    /// Adds an attribute.
    pub fn attribute(&mut self, name: &str, value: AttributeValue<'_>) {
        push_attribute(&mut self.bytes, 9, name, value);
    }

    /// Appends the span to those of a batch.
    pub fn push_to(&self, batch: &mut Vec<u8>) {
        push_bytes(batch, SPANS, &self.bytes);
    }
}

/// What all spans of a request to a collector share: the `resource` of `ResourceSpans`.
#[must_use]
pub fn resource(attributes: &[(String, String)]) -> Vec<u8> {
    let mut resource = Vec::new();
    for (name, value) in attributes {
        push_attribute(&mut resource, 1, name, AttributeValue::Text(value.as_bytes()));
    }
    resource
}

/// An `ExportTraceServiceRequest` with the spans of a batch.
#[must_use]
pub fn export_request(resource: &[u8], batch: &[u8]) -> Vec<u8> {
    let mut scope = Vec::new();
    push_text(&mut scope, 1, b"bolide");
    push_text(&mut scope, 2, env!("CARGO_PKG_VERSION").as_bytes());
    let mut spans = Vec::with_capacity(batch.len() + 64);
    push_bytes(&mut spans, 1, &scope);
    spans.extend_from_slice(batch);
    let mut whole = Vec::with_capacity(spans.len() + resource.len() + 64);
    push_bytes(&mut whole, 1, resource);
    push_bytes(&mut whole, 2, &spans);
    let mut request = Vec::with_capacity(whole.len() + 16);
    push_bytes(&mut request, 1, &whole);
    request
}

fn push_attribute(out: &mut Vec<u8>, field: u32, name: &str, value: AttributeValue<'_>) {
    let mut any = Vec::new();
    match value {
        AttributeValue::Text(text) => push_text(&mut any, 1, text),
        AttributeValue::Number(number) => push_number(&mut any, 3, number as u64),
    }
    let mut pair = Vec::with_capacity(name.len() + any.len() + 8);
    push_bytes(&mut pair, 1, name.as_bytes());
    push_bytes(&mut pair, 2, &any);
    push_bytes(out, field, &pair);
}

fn push_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn push_key(out: &mut Vec<u8>, field: u32, wire_type: u32) {
    push_varint(out, u64::from(field << 3 | wire_type));
}

fn push_number(out: &mut Vec<u8>, field: u32, number: u64) {
    push_key(out, field, 0);
    push_varint(out, number);
}

fn push_fixed64(out: &mut Vec<u8>, field: u32, number: u64) {
    push_key(out, field, 1);
    out.extend_from_slice(&number.to_le_bytes());
}

fn push_bytes(out: &mut Vec<u8>, field: u32, bytes: &[u8]) {
    push_key(out, field, 2);
    push_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn push_text(out: &mut Vec<u8>, field: u32, text: &[u8]) {
    push_bytes(out, field, String::from_utf8_lossy(text).as_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::{
        AttributeValue, SpanFacts, SpanWriter, export_request, push_number, push_varint, resource,
    };

    /// A field: its number, and its number or its bytes.
    type Read = (u64, Result<u64, Vec<u8>>);

    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut number = 0;
        for shift in (0..).step_by(7) {
            let (byte, rest) = bytes.split_first().unwrap();
            *bytes = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if *byte < 0x80 {
                break;
            }
        }
        number
    }

    fn fields(mut bytes: &[u8]) -> Vec<Read> {
        let mut all = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let len = match key & 7 {
                0 => {
                    all.push((key >> 3, Ok(varint(&mut bytes))));
                    continue;
                }
                1 => 8,
                2 => varint(&mut bytes) as usize,
                5 => 4,
                other => panic!("wire type {other}"),
            };
            let (value, rest) = bytes.split_at(len);
            bytes = rest;
            all.push((key >> 3, Err(value.to_vec())));
        }
        all
    }

    fn one(all: &[Read], field: u64) -> Vec<u8> {
        let found: Vec<_> = all.iter().filter(|(number, _)| *number == field).collect();
        assert_eq!(found.len(), 1, "field {field}");
        found[0].1.clone().unwrap_err()
    }

    proptest! {
        #[test]
        fn numbers_are_read_as_they_were_written(number in any::<u64>(), field in 1_u32..1 << 20) {
            let mut out = Vec::new();
            push_varint(&mut out, number);
            prop_assert_eq!(varint(&mut &out[..]), number);
            out.clear();
            push_number(&mut out, field, number);
            prop_assert_eq!(fields(&out), [(u64::from(field), Ok(number))]);
        }

        #[test]
        fn spans_are_read_as_they_were_written(
            trace in any::<[u8; 16]>(), span in any::<[u8; 8]>(), name in ".{0,200}",
            text in proptest::collection::vec(any::<u8>(), 0..300), number in any::<i64>(),
            took in any::<u32>(), is_error in any::<bool>(), count in 1_usize..4,
        ) {
            let started = 1_700_000_000_000_000_000;
            let ended = started + u64::from(took);
            let facts = SpanFacts {
                trace, span, parent: Some(span), state: b"a=1", name: name.as_bytes(),
                started, ended, is_error,
            };
            let mut writer = SpanWriter::new(&facts);
            writer.attribute("text", AttributeValue::Text(&text));
            writer.attribute("number", AttributeValue::Number(number));
            let mut batch = Vec::new();
            (0..count).for_each(|_| writer.push_to(&mut batch));
            let shared = resource(&[("service.name".to_owned(), "s".to_owned())]);
            let whole = one(&fields(&export_request(&shared, &batch)), 1);
            let whole = fields(&whole);
            prop_assert_eq!(one(&whole, 1), shared);
            let spans: Vec<Read> =
                fields(&one(&whole, 2)).into_iter().filter(|(field, _)| *field == 2).collect();
            prop_assert_eq!(spans.len(), count);
            for (_, span_read) in spans {
                let read = fields(&span_read.unwrap_err());
                prop_assert_eq!(one(&read, 1), trace);
                prop_assert_eq!(one(&read, 2), span);
                prop_assert_eq!(one(&read, 5), name.as_bytes());
                prop_assert_eq!(one(&read, 7), started.to_le_bytes());
                prop_assert_eq!(one(&read, 8), ended.to_le_bytes());
                prop_assert_eq!(read.iter().any(|(field, _)| *field == 15), is_error);
                let pairs: Vec<_> = read.iter().filter(|(field, _)| *field == 9).collect();
                let value = |at: usize| {
                    let pair = fields(pairs[at].1.as_ref().unwrap_err());
                    fields(&one(&pair, 2))
                };
                let lossy = String::from_utf8_lossy(&text).into_owned().into_bytes();
                prop_assert_eq!(value(0), [(1, Err(lossy))]);
                prop_assert_eq!(value(1), [(3, Ok(number as u64))]);
            }
        }
    }
}
