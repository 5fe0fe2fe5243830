//! Log messages for stopped evaluations.

use bolide_htaccess::Stop;

/// Appends why an evaluation stopped, for the log.
pub(super) fn push_reason(stop: &Stop, out: &mut Vec<u8>) {
    match stop {
        Stop::Wait => out.extend_from_slice(b".htaccess: a file cannot be asked about here"),
        Stop::GaveUp(source) => {
            out.extend_from_slice(b"a match took too many steps in .htaccess: \"");
            out.extend_from_slice(source);
            out.push(b'"');
        }
        Stop::RefusedAt(_, why, directory, line) => {
            out.extend_from_slice(directory);
            out.extend_from_slice(b".htaccess:");
            bolide_http::digits::push_decimal(out, u64::from(*line));
            out.extend_from_slice(b": ");
            out.extend_from_slice(why.as_bytes());
        }
        Stop::Refused(_, why) => {
            out.extend_from_slice(b".htaccess: ");
            out.extend_from_slice(why.as_bytes());
        }
    }
}
