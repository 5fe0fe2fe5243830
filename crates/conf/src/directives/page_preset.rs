//! Presets of the page cache, for applications without cache support.

use std::sync::Arc;
use std::time::Duration;

use super::page_cache::{page, time, tracking};
use crate::ast::Node;
use crate::model::{DirectiveFamily, NeverCached, PageMode, QueryPattern};
use crate::reader::{ConfReader, ReadFault, ReadResult, invalid_parameter, show};

/// How long pages stay fresh without a purge.
const TTL: Duration = Duration::from_secs(60);

/// The rules for one application: its name, then patterns separated by spaces.
struct Preset {
    name: &'static [u8],
    /// Cookies of users who are logged in.
    cookies: &'static str,
    /// Private paths.
    paths: &'static str,
    /// Arguments that do something.
    args: &'static str,
}

const PRESETS: &[Preset] = &[
    Preset {
        name: b"wordpress",
        cookies: "wordpress_logged_in_* wordpress_sec_* wordpress_no_cache wp-postpass_* \
                  comment_author_* woocommerce_items_in_cart woocommerce_cart_hash \
                  wp_woocommerce_session_* edd_items_in_cart PHPSESSID",
        paths: "/wp-admin /wp-admin/* /wp-login.php* /wp-signup.php /wp-activate.php \
                /wp-cron.php /wp-comments-post.php /wp-trackback.php /wp-json /wp-json/* \
                /xmlrpc.php /cart /cart/* /checkout /checkout/* /my-account /my-account/*",
        args: "preview preview_id preview_nonce _wpnonce rest_route doing_wp_cron unapproved \
               moderation-hash add-to-cart remove_item wc-ajax edd_action",
    },
    Preset {
        name: b"drupal",
        cookies: "SESS* SSESS* NO_CACHE",
        paths: "/admin /admin/* /user /user/* /node/add /node/add/* /cron /cron/* /cron.php \
                /update.php /install.php /core/install.php /batch /system/ajax",
        args: "token form_token destination",
    },
];

/// `page_cache_preset NAME [ttl=TIME]`
pub(super) fn preset(r: &mut ConfReader, node: &Node) -> ReadResult {
    let ttl = match node.arg(1) {
        b"" if node.args_count() == 1 => TTL,
        word => time(word.strip_prefix(b"ttl=").ok_or_else(|| invalid_parameter(word))?)?,
    };
    if node.arg(0) == b"off" {
        page(r).never = None;
        return Ok(());
    }
    let Some(preset) = PRESETS.iter().find(|preset| *preset.name == *node.arg(0)) else {
        return Err(ReadFault::Text(format!(
            "unknown page_cache_preset \"{}\"",
            show(node.arg(0))
        )));
    };
    let draft = r.scope.caches[DirectiveFamily::Application as usize];
    let page = page(r);
    page.never = Some(Arc::new(NeverCached {
        cookies: patterns(preset.cookies),
        paths: patterns(preset.paths),
        args: patterns(preset.args),
    }));
    // The block's own directives take precedence, in any order.
    if !draft.has_mode {
        page.mode = PageMode::On;
        page.accepts_purges = true;
    }
    if !draft.has_ttl {
        page.default_ttl = ttl;
    }
    if page.drop_query.names.is_empty() {
        Arc::make_mut(&mut page.drop_query).names.extend(tracking());
    }
    Ok(())
}

fn patterns(words: &str) -> Vec<QueryPattern> {
    words.split_whitespace().map(|word| QueryPattern::new(word.as_bytes())).collect()
}
