//! The names of Apache's modules whose directives are supported here, those that a server says are
//! loaded, and the emulated version.

/// The emulated version of Apache.
pub(crate) const VERSION: [u32; 3] = [2, 4, 66];

/// Source file names without `.c`, and module identifiers.
const MODULES: [(&str, &str); 30] = [
    ("core", "core_module"),
    ("mod_so", "so_module"),
    ("http_core", "http_module"),
    ("mod_access_compat", "access_compat_module"),
    ("mod_alias", "alias_module"),
    ("mod_auth_basic", "auth_basic_module"),
    ("mod_authn_core", "authn_core_module"),
    ("mod_authn_file", "authn_file_module"),
    ("mod_authz_core", "authz_core_module"),
    ("mod_authz_groupfile", "authz_groupfile_module"),
    ("mod_authz_host", "authz_host_module"),
    ("mod_authz_user", "authz_user_module"),
    ("mod_autoindex", "autoindex_module"),
    ("mod_brotli", "brotli_module"),
    ("mod_deflate", "deflate_module"),
    ("mod_dir", "dir_module"),
    ("mod_env", "env_module"),
    ("mod_expires", "expires_module"),
    ("mod_filter", "filter_module"),
    ("mod_headers", "headers_module"),
    ("mod_mime", "mime_module"),
    ("mod_rewrite", "rewrite_module"),
    ("mod_setenvif", "setenvif_module"),
    ("mod_ssl", "ssl_module"),
    ("mod_substitute", "substitute_module"),
    ("mod_version", "version_module"),
    ("mod_php", "php_module"),
    ("mod_php5", "php5_module"),
    ("mod_php7", "php7_module"),
    ("mod_php8", "php8_module"),
];

/// The names that `<IfModule>` and `<IfDefine>` of a file ask for, as the server has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApacheNames {
    /// The defined names.
    pub defines: Vec<Box<[u8]>>,
    /// The loaded modules: `rewrite` for `mod_rewrite.c` and `rewrite_module`. None for those whose
    /// directives are supported.
    pub modules: Option<Vec<Box<[u8]>>>,
}

impl ApacheNames {
    /// Whether a name is defined.
    pub(crate) fn defines(&self, name: &[u8]) -> bool {
        self.defines.iter().any(|known| **known == *name)
    }

    /// Whether the module called `name` is there. As in Apache, case matters.
    pub(crate) fn has_module(&self, name: &[u8]) -> bool {
        // Not a module of Apache: plugins test for LiteSpeed's directives this way.
        if name.eq_ignore_ascii_case(b"LiteSpeed") {
            return true;
        }
        let Some(modules) = &self.modules else { return is_supported(name) };
        let plain = match name.strip_suffix(b".c") {
            Some(b"http_core") => b"http",
            Some(file) => file.strip_prefix(b"mod_").unwrap_or(file),
            None => name.strip_suffix(b"_module").unwrap_or_default(),
        };
        modules.iter().any(|known| **known == *plain)
    }
}

/// Whether the directives of the module called `name` are supported.
fn is_supported(name: &[u8]) -> bool {
    MODULES.iter().any(|(file, identifier)| {
        name.strip_suffix(b".c") == Some(file.as_bytes()) || name == identifier.as_bytes()
    })
}

#[cfg(test)]
mod tests {
    use super::ApacheNames;

    #[test]
    fn modules_are_those_that_are_named_or_supported() {
        let own = ApacheNames {
            modules: Some(vec![b"authn_dbm"[..].into(), b"http"[..].into()]),
            ..ApacheNames::default()
        };
        let rows = [
            ("mod_authn_dbm.c", true, false),
            ("authn_dbm_module", true, false),
            ("authn_dbm", false, false),
            ("Mod_Authn_dbm.c", false, false),
            ("http_core.c", true, true),
            ("http_module", true, true),
            ("mod_rewrite.c", false, true),
            ("rewrite_module", false, true),
            ("LiteSpeed", true, true),
        ];
        for (name, by_name, by_support) in rows {
            assert_eq!(own.has_module(name.as_bytes()), by_name, "{name}");
            assert_eq!(ApacheNames::default().has_module(name.as_bytes()), by_support, "{name}");
        }
    }
}
