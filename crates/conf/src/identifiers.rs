//! What a certificate is ordered for: host names, wildcards and addresses.

/// Whether a text is a host name in its ASCII form, in lower case and without a final dot.
pub(crate) fn is_dns_name(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(is_inner)
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

/// The identifiers for `.host`: the host and all names one label below it, or only `www` of them if
/// an issuer takes no wildcards.
pub(crate) fn of_dotted(host: &str, takes_wildcards: bool) -> [Box<str>; 2] {
    let below = if takes_wildcards { "*" } else { "www" };
    [host.into(), format!("{below}.{host}").into()]
}

/// The warning that the names below `.host` have no certificate, except one.
pub(crate) fn only_www(directive: &str, host: &str) -> String {
    format!(
        "\"{directive}\" orders certificates for \"{host}\" and \"www.{host}\" only, not for \
         other names of \".{host}\""
    )
}

/// Removes names for which a wildcard among them stands: public issuers refuse both in one order.
pub(crate) fn drop_covered(names: &mut Vec<Box<str>>) {
    let all = names.clone();
    names.retain(|name| {
        let Some((first, parent)) = name.split_once('.') else { return true };
        let is_covering = |other: &str| other.strip_prefix("*.") == Some(parent);
        first == "*" || !all.iter().any(|other| is_covering(other))
    });
}

#[cfg(test)]
mod tests {
    use super::drop_covered;

    #[test]
    fn a_wildcard_stands_for_names_one_label_below() {
        let mut names = ["a.b", "*.b", "b", "x.a.b", "*.a.b", "::1", "10.0.0.1"].map(Box::from);
        let mut names = std::mem::take(&mut names).to_vec();
        drop_covered(&mut names);
        assert_eq!(names, ["*.b", "b", "*.a.b", "::1", "10.0.0.1"].map(Box::from));
    }
}
