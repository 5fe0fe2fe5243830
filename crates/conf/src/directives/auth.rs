//! `auth_basic`, `auth_basic_user_file`: access control by password.

use std::os::unix::ffi::OsStrExt as _;

use crate::directive::{Args, Contexts, DirectiveSpec, value};

const HSLE: Contexts = Contexts::HSLE;

pub(super) const TABLE: &[DirectiveSpec] = &[
    value("auth_basic", HSLE, Args::ONE, |r, node| {
        r.settings().auth_basic = Some(r.template(node.arg(0))?);
        Ok(())
    })
    .doc("Requires HTTP Basic authentication; the text is the realm.", "auth_basic \"Staff\";")
    .takes("TEXT | off")
    .without("off: no password is required"),
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
    .doc(
        "The file of names and password hashes, in the format of `htpasswd`.",
        "auth_basic_user_file users;",
    )
    .takes("FILE")
    .without("none"),
];
