//! Strict parsers of replies: anything unexpected is `None`.

use bolide_cluster::EntryId;
use redis::Value;

use crate::line::{StreamEntry, StreamState};
use crate::objects::ObjectFound;
use crate::settings::ValkeyPlace;

/// Fields of a table and their values.
pub(crate) fn byte_pairs(value: Value) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    let Value::Array(parts) = value else { return None };
    let mut parts = parts.into_iter();
    let mut pairs = Vec::new();
    while let Some(field) = parts.next() {
        match (field, parts.next()?) {
            (Value::BulkString(field), Value::BulkString(bytes)) => pairs.push((field, bytes)),
            _ => return None,
        }
    }
    Some(pairs)
}

/// The values of an array with `count` elements.
pub(crate) fn each(value: Value, count: usize) -> Option<Vec<Value>> {
    match value {
        Value::Array(values) if values.len() == count => Some(values),
        _ => None,
    }
}

/// The field of an entry that holds its bytes.
pub(crate) const FIELD: &str = "purges";

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        Value::SimpleString(text) => Some(text),
        _ => None,
    }
}

fn items(value: &Value) -> Option<&[Value]> {
    match value {
        Value::Array(items) => Some(items),
        _ => None,
    }
}

/// An id.
pub(crate) fn id(value: &Value) -> Option<EntryId> {
    text(value)?.parse().ok()
}

/// Entries with their bytes in this field; an entry without it, or with a value that is not a
/// string, has no bytes.
pub(crate) fn entries_of(value: Value, field: &str) -> Option<Vec<StreamEntry>> {
    let items = match value {
        Value::Array(items) => items,
        Value::Nil => Vec::new(),
        _ => return None,
    };
    items.into_iter().map(|value| entry(value, field)).collect()
}

fn entry(value: Value, field: &str) -> Option<StreamEntry> {
    let Value::Array(parts) = value else { return None };
    let [at, fields] = <[Value; 2]>::try_from(parts).ok()?;
    let id = id(&at)?;
    let too_large = match fields {
        // The number of bytes is returned instead.
        Value::Int(size) => Some(size.unsigned_abs()),
        _ => None,
    };
    let bytes = match fields {
        Value::Array(fields) => <[Value; 2]>::try_from(fields).ok().and_then(|[name, bytes]| {
            let is_ours = text(&name) == Some(field);
            match bytes {
                Value::BulkString(bytes) if is_ours => Some(bytes),
                _ => None,
            }
        }),
        // An entry that was deleted while it was read.
        _ => None,
    };
    Some(StreamEntry { id, bytes, too_large })
}

/// The reply to `XINFO STREAM`.
pub(crate) fn state(value: &Value) -> Option<StreamState> {
    let mut state = StreamState::default();
    let mut has_last = false;
    for pair in items(value)?.chunks_exact(2) {
        let of_entry = || items(&pair[1]).and_then(|parts| id(parts.first()?));
        match text(&pair[0]) {
            Some("last-generated-id") => {
                state.last = id(&pair[1])?;
                has_last = true;
            }
            Some("first-entry") => state.first = of_entry(),
            Some("last-entry") => state.newest = of_entry(),
            Some("length") => state.length = number(&pair[1])?,
            _ => {}
        }
    }
    has_last.then_some(state)
}

pub(crate) fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Int(number) => u64::try_from(*number).ok(),
        other => text(other)?.parse().ok(),
    }
}

/// The reply of the script that requests an object.
pub(crate) fn object(value: Value) -> Option<ObjectFound> {
    let Value::Array(parts) = value else { return None };
    let mut parts = parts.into_iter();
    let found = match (number(&parts.next()?)?, parts.next()) {
        (1, Some(Value::BulkString(bytes))) => ObjectFound::Bytes(bytes),
        (2, None) => ObjectFound::Held,
        (3, None) => ObjectFound::Leased,
        (4, None) => ObjectFound::Alone,
        _ => return None,
    };
    parts.next().is_none().then_some(found)
}

/// `TIME`, in milliseconds.
pub(crate) fn time(value: &Value) -> Option<u64> {
    let [seconds, micros] = items(value)? else { return None };
    number(seconds)?.checked_mul(1000)?.checked_add(number(micros)? / 1000)
}

/// A text, or none.
pub(crate) fn maybe_text(value: &Value) -> Option<String> {
    text(value).map(str::to_owned)
}

/// Fields and values of a hash; those that are not text are omitted.
pub(crate) fn pairs(value: &Value) -> Option<Vec<(String, String)>> {
    let owned = |pair: &[Value]| Some((text(&pair[0])?.to_owned(), text(&pair[1])?.to_owned()));
    Some(items(value)?.chunks_exact(2).filter_map(owned).collect())
}

/// Host and port in a reply of a sentinel.
pub(crate) fn place(value: &Value) -> Option<ValkeyPlace> {
    let [host, port] = items(value)? else { return None };
    Some(ValkeyPlace::Tcp(text(host)?.to_owned(), u16::try_from(number(port)?).ok()?))
}

#[cfg(test)]
mod tests {
    use bolide_cluster::EntryId;
    use redis::Value;

    use super::{FIELD, ObjectFound, entries_of, id, object, place, state, time};

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    fn entry(at: &str, fields: &[&str]) -> Value {
        Value::Array(vec![bulk(at), Value::Array(fields.iter().map(|text| bulk(text)).collect())])
    }

    #[test]
    fn only_entries_with_our_field_have_bytes() {
        let entries = |value| entries_of(value, FIELD);
        let read = entries(Value::Array(vec![
            entry("1-0", &["purges", "x"]),
            entry("2-0", &["other", "x"]),
            entry("3-0", &["purges", "x", "more", "y"]),
            entry("4-0", &[]),
        ]));
        let read = read.expect("entries");
        let has: Vec<_> = read.iter().map(|entry| (entry.id.ms, entry.bytes.is_some())).collect();
        assert_eq!(has, [(1, true), (2, false), (3, false), (4, false)]);
        assert_eq!(entries(Value::Nil), Some(Vec::new()));
        let large = Value::Array(vec![bulk("5-0"), Value::Int(40_000_000)]);
        let large = entries(Value::Array(vec![large])).expect("an entry");
        assert_eq!((&large[0].bytes, large[0].too_large), (&None, Some(40_000_000)));
        for wrong in [
            Value::Int(3),
            Value::Array(vec![Value::Int(3)]),
            Value::Array(vec![entry("x", &["purges", "x"])]),
            Value::Array(vec![Value::Array(vec![bulk("1-0")])]),
        ] {
            assert_eq!(entries(wrong), None);
        }
    }

    #[test]
    fn answers_about_objects_are_read_strictly() {
        let found = Value::Array(vec![Value::Int(1), bulk("x")]);
        assert_eq!(object(found), Some(ObjectFound::Bytes(b"x".to_vec())));
        assert_eq!(object(Value::Array(vec![Value::Int(2)])), Some(ObjectFound::Held));
        for wrong in [
            Value::Nil,
            Value::Array(vec![]),
            Value::Array(vec![Value::Int(1)]),
            Value::Array(vec![Value::Int(1), Value::Int(1)]),
            Value::Array(vec![Value::Int(2), bulk("x")]),
            Value::Array(vec![Value::Int(1), bulk("x"), bulk("y")]),
            Value::Array(vec![Value::Int(5)]),
            Value::Array(vec![Value::Int(-1)]),
        ] {
            assert_eq!(object(wrong), None);
        }
    }

    #[test]
    fn states_times_and_places_are_read_strictly() {
        let reply = Value::Array(vec![
            bulk("length"),
            Value::Int(2),
            bulk("last-generated-id"),
            bulk("9-1"),
            bulk("first-entry"),
            entry("3-0", &["purges", "x"]),
            bulk("last-entry"),
            Value::Nil,
        ]);
        let read = state(&reply).expect("a state");
        let first = Some(EntryId { ms: 3, number: 0 });
        assert_eq!((read.first, read.newest, read.length), (first, None, 2));
        assert_eq!(state(&Value::Array(vec![])), None);
        assert_eq!(time(&Value::Array(vec![bulk("5"), bulk("7000")])), Some(5007));
        assert_eq!(time(&Value::Array(vec![bulk("5")])), None);
        let found = place(&Value::Array(vec![bulk("::1"), bulk("6379")]));
        assert_eq!(found.map(|place| place.to_string()).as_deref(), Some("[::1]:6379"));
        assert_eq!((place(&Value::Nil), id(&Value::Int(1))), (None, None));
    }
}
