//! Errors of the kernel in nginx's form: `111: Connection refused`.

use std::io::Error;

/// The words of an error, without Rust's ` (os error 111)`.
#[must_use]
pub fn words(error: &Error) -> String {
    let mut text = error.to_string();
    if let Some(end) = text.find(" (os error") {
        text.truncate(end);
    }
    text
}

/// An error with its number, which is 0 where the kernel gave none.
#[must_use]
pub fn describe(error: &Error) -> String {
    format!("{}: {}", error.raw_os_error().unwrap_or(0), words(error))
}

/// A number with its words.
#[must_use]
pub fn reason(errno: i32) -> String {
    describe(&Error::from_raw_os_error(errno))
}

#[cfg(test)]
mod tests {
    use std::io::Error;

    use super::{describe, reason, words};

    #[test]
    fn errors_are_told_as_nginx_tells_them() {
        let refused = Error::from_raw_os_error(111);
        assert!(refused.to_string().ends_with(" (os error 111)"), "{refused}");
        assert_eq!(words(&refused), "Connection refused");
        assert_eq!(describe(&refused), "111: Connection refused");
        assert_eq!(reason(2), "2: No such file or directory");
        let own = Error::other("the file is too large");
        assert_eq!(words(&own), "the file is too large");
        assert_eq!(describe(&own), "0: the file is too large");
    }
}
