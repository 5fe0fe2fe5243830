//! Fields that an answer has once: the first one counts, as in nginx.
//!
//! Owns which fields these are; what makes a head invalid is the business of the framing.

use bolide_http::{FieldMap, Name};

/// Fields that only this server reads, of which one counts.
const CONTROLS: [&[u8]; 3] = [b"X-Accel-Expires", b"X-Accel-Redirect", b"X-Accel-Limit-Rate"];

/// Drops what comes again of fields that may be there once; a line for the log about each.
pub(crate) fn drop_duplicates(fields: &mut FieldMap) -> Vec<Vec<u8>> {
    // PERF: almost no head has any.
    if !has_duplicates(fields) {
        return Vec::new();
    }
    let (mut kept, mut lines) = (FieldMap::new(), Vec::new());
    for field in fields.iter() {
        let is_single = single(field.name, field.text).is_some();
        match kept.get_text(field.text).filter(|_| is_single) {
            Some(first) => lines.push(line(field.text, field.value, first)),
            None => kept.push_parsed(field.name, field.text, field.value),
        }
    }
    *fields = kept;
    lines
}

fn has_duplicates(fields: &FieldMap) -> bool {
    let mut seen = 0_u16;
    fields.iter().any(|field| {
        let bit = single(field.name, field.text).map_or(0, |place| 1 << place);
        let is_again = seen & bit != 0;
        seen |= bit;
        is_again
    })
}

/// The place of a field among those that may be there once.
fn single(name: Name, text: &[u8]) -> Option<u32> {
    Some(match name {
        Name::ContentType => 0,
        Name::Date => 1,
        Name::LastModified => 2,
        Name::Etag => 3,
        Name::Server => 4,
        Name::Location => 5,
        Name::Refresh => 6,
        Name::Expires => 7,
        Name::Other => {
            let place = CONTROLS.iter().position(|known| known.eq_ignore_ascii_case(text))?;
            8 + place as u32
        }
        _ => return None,
    })
}

fn line(name: &[u8], value: &[u8], first: &[u8]) -> Vec<u8> {
    let again = b"upstream sent duplicate header line: \"";
    let before = b"\", previous value: \"";
    [again, name, b": ", value, before, name, b": ", first, b"\", ignored"].concat()
}

#[cfg(test)]
mod tests {
    use bolide_http::FieldMap;

    use super::drop_duplicates;

    fn dropped(lines: &[(&str, &str)]) -> (String, Vec<String>) {
        let mut fields = FieldMap::new();
        lines.iter().for_each(|(name, value)| fields.push_text(name.as_bytes(), value.as_bytes()));
        let said = drop_duplicates(&mut fields);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let kept = fields.iter().map(|field| format!("{}={}", text(field.text), text(field.value)));
        (kept.collect::<Vec<_>>().join(" "), said.iter().map(|line| text(line)).collect())
    }

    #[test]
    fn the_first_of_a_single_field_counts_and_others_may_repeat() {
        let (kept, said) = dropped(&[("Expires", "0"), ("X-A", "1"), ("Expires", "-1")]);
        assert_eq!(kept, "Expires=0 X-A=1");
        let words = "upstream sent duplicate header line: \"Expires: -1\", previous value: \
                     \"Expires: 0\", ignored";
        assert_eq!(said, [words]);
        let (kept, said) = dropped(&[("x-accel-EXPIRES", "1"), ("X-Accel-Expires", "2")]);
        assert_eq!((&*kept, said.len()), ("x-accel-EXPIRES=1", 1));
        let many = [("Vary", "a"), ("Vary", "b"), ("X-A", "1"), ("x-a", "2"), ("Link", "a")];
        let (kept, said) = dropped(&many);
        assert_eq!((&*kept, said.len()), ("Vary=a Vary=b X-A=1 x-a=2 Link=a", 0));
    }
}
