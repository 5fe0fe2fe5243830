//! `userid*`: cookies that tell clients apart, as those of Apache's mod_uid.
//!
//! `$uid_got` is the identifier that a client brought, `$uid_set` the one that it is given. Where
//! `$uid_reset` is neither empty nor `0`, it gets another; `log` tells so in the error log.

use std::sync::Arc;

use crate::ast::Node;
use crate::choice::{choice, chosen, say_once};
use crate::directive::{Args, Contexts, DirectiveSpec, list, value};
use crate::model::{UserId, UserIdExpires, UserIdFlags, UserIdMode};
use crate::reader::{ConfReader, INVALID, ReadFault, ReadResult, show};
use crate::value::{self as values, Unit};

const HSL: Contexts = Contexts::HSL;

pub(super) const TABLE: &[DirectiveSpec] = &[
    value("userid", HSL, Args::ONE, |r, node| {
        let modes = [
            ("off", UserIdMode::Off),
            ("log", UserIdMode::Log),
            ("v1", UserIdMode::V1),
            ("on", UserIdMode::On),
        ];
        conf(r).mode = chosen(node, &modes)?;
        Ok(())
    })
    .doc(
        "Whether clients get a cookie with an identifier, and whether one is read (`log`).",
        "userid on;",
    )
    .takes("on | v1 | log | off")
    .default("off"),
    value("userid_domain", HSL, Args::ONE, |r, node| {
        conf(r).domain = (node.arg(0) != b"none").then(|| node.arg(0).into());
        Ok(())
    })
    .doc("The domain of the cookie.", "userid_domain example.com;")
    .takes("NAME | none")
    .default("none"),
    value("userid_expires", HSL, Args::ONE, |r, node| {
        conf(r).expires = match node.arg(0) {
            b"off" => UserIdExpires::Off,
            b"max" => UserIdExpires::Max,
            word => match values::time(word, Unit::Seconds).ok_or(INVALID)?.as_secs() {
                0 => UserIdExpires::Off,
                seconds => UserIdExpires::After(seconds),
            },
        };
        Ok(())
    })
    .doc("How long browsers keep the cookie.", "userid_expires 365d;")
    .takes("SECONDS | max | off")
    .default("off"),
    list("userid_flags", HSL, Args::between(1, 3), flags)
        .doc("Attributes of the cookie.", "userid_flags secure httponly samesite=lax;")
        .takes("off | secure | httponly | samesite=strict | samesite=lax | samesite=none…")
        .default("off"),
    value("userid_mark", HSL, Args::ONE, |r, node| {
        conf(r).mark = match node.arg(0) {
            b"off" => None,
            [mark] if mark.is_ascii_alphanumeric() || *mark == b'=' => Some(*mark),
            _ => {
                let rest = "value must be \"off\" or a single letter, digit or \"=\"";
                return Err(ReadFault::Value(rest));
            }
        };
        Ok(())
    })
    .doc(
        "A letter in the cookie. A client whose cookie has another letter gets a new cookie with \
         the same identifier.",
        "userid_mark a;",
    )
    .takes("TEXT | off")
    .default("off"),
    value("userid_name", HSL, Args::ONE, |r, node| {
        conf(r).name = node.arg(0).into();
        Ok(())
    })
    .doc("The name of the cookie.", "userid_name sid;")
    .takes("NAME")
    .default("uid"),
    value("userid_p3p", HSL, Args::ONE, |r, node| {
        conf(r).p3p = if node.arg(0) == b"none" { Arc::default() } else { node.arg(0).into() };
        Ok(())
    })
    .doc("The `P3P` field beside the cookie.", "userid_p3p 'CP=\"CUR ADM OUR NOR\"';")
    .takes("TEXT | none")
    .default("none"),
    value("userid_path", HSL, Args::ONE, |r, node| {
        conf(r).path = node.arg(0).into();
        Ok(())
    })
    .doc("The path of the cookie.", "userid_path /shop/;")
    .takes("TEXT")
    .default("/"),
    value("userid_service", HSL, Args::ONE, |r, node| {
        let number = values::number(node.arg(0)).ok_or(ReadFault::Value("invalid number"))?;
        conf(r).service = Some(number as u32);
        Ok(())
    })
    .doc(
        "The first number of identifiers, where several servers give them out.",
        "userid_service 7;",
    )
    .takes("NUMBER")
    .without("the server's address; with `userid v1` 0"),
];

fn conf(r: &mut ConfReader) -> &mut UserId {
    Arc::make_mut(&mut r.settings().user_id)
}

fn flags(r: &mut ConfReader, node: &Node) -> ReadResult {
    if !r.again {
        conf(r).flags = UserIdFlags::default();
    }
    let sites = ["samesite=strict", "samesite=lax", "samesite=none"].map(|site| (site, site));
    for word in node.args() {
        let flags = &mut conf(r).flags;
        match &*word.to_ascii_lowercase() {
            b"off" => {}
            b"secure" => flags.secure = true,
            b"httponly" => flags.http_only = true,
            _ => {
                let site = choice(word, &sites)?;
                // As in nginx: the first value holds, and each further one is a warning.
                if flags.same_site.is_some_and(|before| before != site) {
                    r.warn(format!("duplicate value \"{}\"", show(word)));
                    continue;
                }
                flags.same_site = Some(site);
            }
        }
        say_once(r, node, word);
    }
    Ok(())
}
