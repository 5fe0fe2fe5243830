//! The assets of the console, which are part of the binary, and their response fields.

/// An asset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConsoleAsset {
    /// Its media type.
    pub(crate) media: &'static str,
    /// Its content.
    pub(crate) text: &'static str,
}

/// The placeholder of the process's secret in the page.
pub(crate) const TOKEN_MARK: &str = "{token}";
/// The placeholder in the page for whether this client may act.
pub(crate) const ACTS_MARK: &str = "{acts}";

/// The page, with the two placeholders.
pub(crate) const PAGE: ConsoleAsset =
    ConsoleAsset { media: "text/html; charset=utf-8", text: include_str!("assets/page.html") };

/// The asset of this name.
pub(crate) fn asset(name: &[u8]) -> Option<ConsoleAsset> {
    let (media, text) = match name {
        b"app.css" => ("text/css; charset=utf-8", include_str!("assets/app.css")),
        b"app.js" => ("text/javascript; charset=utf-8", include_str!("assets/app.js")),
        b"views.js" => ("text/javascript; charset=utf-8", include_str!("assets/views.js")),
        b"icon.svg" => ("image/svg+xml", include_str!("assets/icon.svg")),
        _ => return None,
    };
    Some(ConsoleAsset { media, text })
}

/// Fields of every response: the page loads nothing from elsewhere, runs no inline script, is not
/// framed, and is not cached.
pub(crate) const FIELDS: &[(&str, &str)] = &[
    (
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src \
         'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
    ("Cache-Control", "no-store"),
    ("Cross-Origin-Embedder-Policy", "require-corp"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
];

#[cfg(test)]
mod tests {
    use super::{ACTS_MARK, PAGE, TOKEN_MARK, asset};

    #[test]
    fn the_page_names_only_files_that_are_there_and_has_no_script_or_style_of_its_own() {
        let mut named = 0;
        for mark in ["href=\"", "src=\""] {
            for rest in PAGE.text.split(mark).skip(1) {
                let name = rest.split('"').next().unwrap_or_default();
                assert!(name.starts_with('#') || asset(name.as_bytes()).is_some(), "{name}");
                named += 1;
            }
        }
        assert!(named >= 3, "{named} names");
        for mark in [TOKEN_MARK, ACTS_MARK] {
            assert_eq!(PAGE.text.matches(mark).count(), 1, "{mark}");
        }
        for refused in ["<style", " style=", " onclick=", "<script>"] {
            assert!(!PAGE.text.contains(refused), "{refused}");
        }
        assert!(asset(b"").is_none() && asset(b"page.html").is_none());
    }
}
