//! `auth_basic`, `auth_basic_user_file`: access control by password.

use std::os::unix::ffi::OsStrExt as _;

use crate::directive::{Args, Contexts, DirectiveSpec, value};

const HSLE: Contexts = Contexts::HSLE;

pub(super) const TABLE: &[DirectiveSpec] = &[
    value("auth_basic", HSLE, Args::ONE, |r, node| {
        r.settings().auth_basic = Some(r.template(node.arg(0))?);
        Ok(())
    })
    .doc("Asks for name and password; the text names what they are for.", "auth_basic \"Staff\";")
    .takes("TEXT | off")
    .without("off: no password is asked for"),
    value("auth_basic_user_file", HSLE, Args::ONE, |r, node| {
        let word = node.arg(0);
        let file = if word.first() == Some(&b'$') {
            r.template(word)?
        } else {
            let path = r.beside_conf(word);
            r.template(path.as_os_str().as_bytes())?
        };
        r.settings().auth_basic_user_file = Some(file);
        Ok(())
    })
    .doc("Names and password hashes, as `htpasswd` writes them.", "auth_basic_user_file users;")
    .takes("FILE")
    .without("none"),
];
