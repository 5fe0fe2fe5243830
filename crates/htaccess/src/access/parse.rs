//! Parses `Require`, `Order`, `Allow`, `Deny` and `Satisfy`.

use super::{AccessOrder, AddressRange, AllowedHost, Requirement, Satisfies};
use crate::expr;
use crate::fault::{ParseResult, shown};
use crate::lines::ArgumentWords;
use crate::methods::MethodSet;

/// `Require …`
pub(crate) fn require(arguments: &[u8]) -> ParseResult<Requirement> {
    let mut words = ArgumentWords::new(arguments);
    let missing = || "Require directive requires additional arguments".to_owned();
    let mut name = words.next_word().ok_or_else(missing)?;
    let negated = name.eq_ignore_ascii_case(b"not");
    if negated {
        name = words.next_word().ok_or_else(missing)?;
    }
    let rule = provider(&name, words, negated)?;
    Ok(if negated { Requirement::Not(Box::new(rule)) } else { rule })
}

fn provider(name: &[u8], words: ArgumentWords<'_>, negated: bool) -> ParseResult<Requirement> {
    let listed = |words: ArgumentWords<'_>| -> Vec<Box<[u8]>> { words.map(Into::into).collect() };
    let some = |list: Vec<Box<[u8]>>| match list.is_empty() {
        true => Err(format!("'require {}' needs an argument", shown(name))),
        false => Ok(list),
    };
    Ok(match name {
        b"all" => {
            let words = listed(words);
            match words.iter().map(|word| word.to_ascii_lowercase()).collect::<Vec<_>>()[..] {
                [ref one] if *one == b"granted" => Requirement::Granted,
                [ref one] if *one == b"denied" => Requirement::Denied,
                _ => {
                    return Err(
                        "Argument for 'Require all' must be 'granted' or 'denied'".to_owned()
                    );
                }
            }
        }
        b"env" => Requirement::Env(some(listed(words))?),
        b"method" => Requirement::Method(MethodSet::only(some(listed(words))?)),
        b"ip" => {
            let networks = some(listed(words))?.into_iter().map(|text| {
                AddressRange::parse(&text)
                    .ok_or_else(|| format!("ip address '{}' appears to be invalid", shown(&text)))
            });
            Requirement::Ip(networks.collect::<ParseResult<_>>()?)
        }
        // Without name lookups it is unknown which client is meant: the rule would neither grant
        // nor deny access.
        b"host" | b"forward-dns" if negated => {
            return Err("'Require not host' needs names looked up, which is not done".to_owned());
        }
        b"host" | b"forward-dns" => {
            some(listed(words))?;
            Requirement::Host
        }
        b"local" => Requirement::Local,
        b"ssl" | b"ssl-verify-client" if !words.rest().is_empty() => {
            return Err(format!("Require {} takes no arguments", shown(name)));
        }
        b"ssl" => Requirement::Tls,
        b"ssl-verify-client" => Requirement::TlsVerified,
        b"user" => Requirement::User(some(listed(words))?),
        b"group" => Requirement::Group(some(listed(words))?),
        b"valid-user" => Requirement::ValidUser,
        b"expr" => {
            let mut whole = words;
            let text = match whole.rest().first() {
                Some(b'"' | b'\'') => {
                    let word = whole.next_word().unwrap_or_default();
                    if !whole.rest().is_empty() {
                        return Err(
                            "Cannot parse expression in require line: trailing text".to_owned()
                        );
                    }
                    word
                }
                _ => whole.rest().to_vec(),
            };
            let condition = expr::condition(&text)?;
            match has_user(&text) {
                true => Requirement::ExprOfUser(condition),
                false => Requirement::Expr(condition),
            }
        }
        _ => return Err(format!("Unknown Authz provider: {}", shown(name))),
    })
}

/// Whether an expression reads the user.
fn has_user(expression: &[u8]) -> bool {
    const USER: &[u8] = b"%{REMOTE_USER}";
    expression.windows(USER.len()).any(|part| part.eq_ignore_ascii_case(USER))
}

/// `Order …`
pub(crate) fn order(arguments: &[u8]) -> ParseResult<AccessOrder> {
    let words: Vec<_> =
        ArgumentWords::new(arguments).map(|word| word.to_ascii_lowercase()).collect();
    match words.iter().map(|word| &word[..]).collect::<Vec<_>>()[..] {
        [b"allow,deny" | b"mutual-failure"] => Ok(AccessOrder::AllowDeny),
        [b"deny,allow"] => Ok(AccessOrder::DenyAllow),
        [_] => Err("unknown order".to_owned()),
        _ => {
            Err("order takes one argument, 'allow,deny', 'deny,allow', or 'mutual-failure'"
                .to_owned())
        }
    }
}

/// The arguments of `Allow` or `Deny`.
pub(crate) fn allow_or_deny(arguments: &[u8], denies: bool) -> ParseResult<Vec<AllowedHost>> {
    let mut words = ArgumentWords::new(arguments);
    let from = words.next_word().unwrap_or_default();
    if !from.eq_ignore_ascii_case(b"from") || words.rest().is_empty() {
        return Err("allow and deny must be followed by 'from'".to_owned());
    }
    words.map(|word| who(&word, denies)).collect()
}

fn who(word: &[u8], denies: bool) -> ParseResult<AllowedHost> {
    let lower = word.to_ascii_lowercase();
    if lower == b"all" {
        return Ok(AllowedHost::All);
    }
    if lower.starts_with(b"env=") {
        return Ok(match &word[4..] {
            [b'!', name @ ..] => AllowedHost::NotEnv(name.into()),
            name => AllowedHost::Env(name.into()),
        });
    }
    if let Some(network) = AddressRange::parse(word) {
        return Ok(AllowedHost::Ip(network));
    }
    if word.contains(&b'/') || word.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.') {
        return Err("An IP address was expected".to_owned());
    }
    if denies && lower != b"none" {
        return Err(format!("Deny from {} needs names looked up, which is not done", shown(word)));
    }
    Ok(AllowedHost::Host)
}

/// `Satisfy …`
pub(crate) fn satisfy(arguments: &[u8]) -> ParseResult<Satisfies> {
    let words: Vec<_> =
        ArgumentWords::new(arguments).map(|word| word.to_ascii_lowercase()).collect();
    match words.iter().map(|word| &word[..]).collect::<Vec<_>>()[..] {
        [b"all"] => Ok(Satisfies::All),
        [b"any"] => Ok(Satisfies::Any),
        _ => Err("Satisfy either 'any' or 'all'.".to_owned()),
    }
}
