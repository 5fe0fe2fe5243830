//! `.htaccess` files of Apache sites. What they may say is described in
//! [htaccess.md](../htaccess.md).

use crate::directive::{Contexts, DirectiveSpec, flag};

pub(super) const TABLE: &[DirectiveSpec] =
    &[flag("apache_htaccess", Contexts::HSL, |r| &mut r.settings().apache_htaccess).doc(
        "Whether `.htaccess` files are read in the directories that lead to a file, from the \
         location's `root` on, and are obeyed as Apache obeys them. A change is noticed without a \
         reload. A file with a line that is not understood is answered with 500, one that cannot \
         be read with 403. Files whose names begin with `.ht` are not served.",
        "apache_htaccess on;",
    )];
