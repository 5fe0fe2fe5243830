//! `split_clients`: a variable with one of several values, each for a share of all clients.

use crate::ast::Node;
use crate::diagnostic::Diagnostic;
use crate::directive::{Args, Contexts, DirectiveSpec, Inheritance, leaf};
use crate::model::{Definition, LogLevel, SplitClients};
use crate::reader::{ConfReader, ReadFault, ReadResult, show};

pub(super) const TABLE: &[DirectiveSpec] =
    &[leaf("split_clients", Contexts::HTTP, Args::TWO, Inheritance::Own, split_clients)
        .doc(
            "A variable with one of several values, each for a fixed share of clients.",
            "split_clients $remote_addr $variant { 50% one; * two; }",
        )
        .takes("TEXT VARIABLE")
        .without("none")];

/// The whole, in hundredths of a percent.
const WHOLE: u32 = 10_000;

fn split_clients(r: &mut ConfReader, node: &Node) -> ReadResult {
    let source = r.template(node.arg(0))?;
    let name = ConfReader::defined_name(node.arg(1))?;
    // The name is checked before the rows are.
    r.define_as(&name, Definition::Assigned)?;
    let mut shares = Vec::new();
    for entry in node.block.as_ref().map_or(&[][..], |block| &block.nodes) {
        match share(entry) {
            Ok(share) => shares.push((share, Box::from(entry.arg(0)))),
            Err(fault) => r.judge(entry, Err(fault)),
        }
    }
    let (mut total, mut end) = (0, 0_u32);
    let mut parts = Vec::with_capacity(shares.len());
    for (share, value) in shares {
        total = share.map_or(WHOLE, |share| total + share);
        if total > WHOLE {
            let order = node.block.as_ref().map_or(node.order, |block| block.closed);
            let place = r.closing_place(node);
            let message = "percent total is greater than 100%";
            r.note(order, Diagnostic::new(LogLevel::Emerg, message, Some(place)));
            return Ok(());
        }
        let until = share.map(|share| {
            let width = u64::from(share) * u64::from(u32::MAX) / u64::from(WHOLE);
            end = end.saturating_add(u32::try_from(width).unwrap_or(u32::MAX));
            end
        });
        parts.push((until, value));
    }
    let split = SplitClients { source, parts };
    r.define_as(&name, Definition::Split(Box::new(split)))?;
    Ok(())
}

/// Hundredths of a percent; `None` for `*`, the rest.
fn share(entry: &Node) -> Result<Option<u32>, ReadFault> {
    if entry.block.is_some() {
        return Err(ReadFault::Text("unexpected \"{\"".to_owned()));
    }
    if entry.name() == b"*" {
        return Ok(None);
    }
    let share = entry.name().strip_suffix(b"%").and_then(hundredths);
    match share.filter(|share| *share > 0) {
        Some(share) => Ok(Some(share)),
        None => Err(ReadFault::Text(format!("invalid percent value \"{}\"", show(entry.name())))),
    }
}

/// A number with at most two decimals, times a hundred.
fn hundredths(text: &[u8]) -> Option<u32> {
    let (whole, decimals) = match text.iter().position(|byte| *byte == b'.') {
        Some(dot) => (&text[..dot], &text[dot + 1..]),
        None => (text, &b""[..]),
    };
    if text.is_empty() || decimals.len() > 2 {
        return None;
    }
    let digits = whole.iter().chain(decimals);
    let number = digits.copied().try_fold(0_u32, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u32::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })?;
    number.checked_mul([100, 10, 1][decimals.len()])
}

#[cfg(test)]
mod tests {
    use super::hundredths;

    #[test]
    fn percentages_have_two_decimals_at_most() {
        for (text, wanted) in
            [("50", 5000), ("0.5", 50), (".05", 5), ("5.", 500), ("100.01", 10_001), ("0.00", 0)]
        {
            assert_eq!(hundredths(text.as_bytes()), Some(wanted), "{text}");
        }
        for text in ["", "x", "-5", "1.2.3", "0.555", "1e2", "99999999999999999999"] {
            assert_eq!(hundredths(text.as_bytes()), None, "{text}");
        }
    }
}
