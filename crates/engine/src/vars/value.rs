//! Whether a variable has a value, and how values are written.

use bolide_http::digits::push_decimal;

/// Whether a variable has a value; an absent one is `-` in default log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VariableValue {
    /// It has a value, which may be empty.
    Yes,
    /// It has no value.
    No,
}

impl VariableValue {
    pub(crate) const fn when(found: bool) -> Self {
        if found { Self::Yes } else { Self::No }
    }
}

pub(super) fn text(out: &mut Vec<u8>, value: &[u8]) -> VariableValue {
    out.extend_from_slice(value);
    VariableValue::Yes
}

pub(super) fn maybe<T: AsRef<[u8]> + ?Sized>(
    out: &mut Vec<u8>,
    value: Option<&T>,
) -> VariableValue {
    if let Some(value) = value {
        out.extend_from_slice(value.as_ref());
    }
    VariableValue::when(value.is_some())
}

pub(super) fn number(out: &mut Vec<u8>, value: u64) -> VariableValue {
    push_decimal(out, value);
    VariableValue::Yes
}

/// Appends milliseconds as seconds with three decimals.
pub(super) fn millis(out: &mut Vec<u8>, millis: u64) -> VariableValue {
    push_decimal(out, millis / 1000);
    let rest = (millis % 1000) as u16;
    let digit = |value: u16| b'0' + (value % 10) as u8;
    out.extend_from_slice(&[b'.', digit(rest / 100), digit(rest / 10), digit(rest)]);
    VariableValue::Yes
}

/// Appends a status with three digits at least.
pub(crate) fn push_status(out: &mut Vec<u8>, status: u16) {
    debug_assert!(status < 1000, "a status has three digits");
    let digit = |value: u16| b'0' + (value % 10) as u8;
    out.extend_from_slice(&[digit(status / 100), digit(status / 10), digit(status)]);
}
