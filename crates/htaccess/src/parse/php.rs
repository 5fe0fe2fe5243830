//! PHP settings. Refuses those that only the server may set.

use crate::fault::{ParseResult, shown};
use crate::lines::ArgumentWords;
use crate::settings::PhpSetting;

/// `php_flag` or `php_value`.
pub(super) fn setting(is_flag: bool, arguments: &[u8]) -> ParseResult<PhpSetting> {
    let name = if is_flag { "php_flag" } else { "php_value" };
    let mut words = ArgumentWords::new(arguments);
    let (setting, value) = (words.next_word(), words.next_word());
    let (Some(setting), Some(value), []) = (setting, value, words.rest()) else {
        return Err(format!("{name} takes two arguments, PHP Value Modifier"));
    };
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    if !setting.iter().all(is_name) || value.iter().any(u8::is_ascii_control) {
        return Err(format!("{name}: '{}' is not acceptable", shown(&setting)));
    }
    if is_of_the_server(&setting) {
        return Err(format!("{name}: '{}' can be set by the server only", shown(&setting)));
    }
    let lower = value.to_ascii_lowercase();
    let value: Box<[u8]> = match (is_flag, &lower[..]) {
        (true, b"on" | b"1" | b"true" | b"yes") => b"1"[..].into(),
        (true, _) => b"0"[..].into(),
        (_, b"none") => Box::default(),
        _ => value.into(),
    };
    Ok(PhpSetting { name: setting.into(), value })
}

/// Settings that PHP takes only from `php.ini` or the server (`INI_SYSTEM`), but a pool would take
/// from a request: they load code, or lift restrictions of scripts.
const SYSTEM_SETTINGS: [&[u8]; 16] = [
    b"allow_url_fopen",
    b"allow_url_include",
    b"disable_classes",
    b"disable_functions",
    b"doc_root",
    b"enable_dl",
    b"extension",
    b"extension_dir",
    b"mail.add_x_header",
    b"mail.log",
    b"open_basedir",
    b"sendmail_path",
    b"sys_temp_dir",
    b"upload_tmp_dir",
    b"user_dir",
    b"zend_extension",
];

fn is_of_the_server(setting: &[u8]) -> bool {
    let lower = setting.to_ascii_lowercase();
    SYSTEM_SETTINGS.contains(&&lower[..])
        || [&b"opcache."[..], b"ffi."].iter().any(|room| lower.starts_with(room))
}
