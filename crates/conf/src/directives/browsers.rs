//! `modern_browser`, `ancient_browser`: `$modern_browser`, `$ancient_browser` and `$msie` say what
//! `User-Agent` tells of a browser.
//!
//! What is listed by name is modern from its version on. Opera calls itself by others' names, so it
//! is ancient where others are listed and it is not.

use std::sync::Arc;

use crate::ast::Node;
use crate::choice::choice;
use crate::directive::{Args, Contexts, DirectiveSpec, list};
use crate::model::{BrowserName, Browsers, browser_version};
use crate::reader::{ConfReader, ReadFault, ReadResult, show};

const HSL: Contexts = Contexts::HSL;

pub(super) const TABLE: &[DirectiveSpec] = &[
    list("ancient_browser", HSL, Args::at_least(1), ancient)
        .doc(
            "Texts in `User-Agent` of browsers that are ancient; `netscape4` are all that call \
             themselves Mozilla 1 to 4.",
            "ancient_browser netscape4 Links Lynx;",
        )
        .takes("TEXT | netscape4…")
        .without("none"),
    list("ancient_browser_value", HSL, Args::ONE, |r, node| {
        conf(r).ancient_value = node.arg(0).into();
        Ok(())
    })
    .doc("The value of `$ancient_browser` for ancient browsers.", "ancient_browser_value old;")
    .takes("TEXT")
    .default("1"),
    list("modern_browser", HSL, Args::between(1, 2), modern)
        .doc(
            "From which version a browser is modern; `unlisted` are all that no directive names.",
            "modern_browser msie 5.5;",
        )
        .takes("msie | gecko | opera | safari | konqueror NUMBER | unlisted")
        .without("none"),
    list("modern_browser_value", HSL, Args::ONE, |r, node| {
        conf(r).modern_value = node.arg(0).into();
        Ok(())
    })
    .doc("The value of `$modern_browser` for modern browsers.", "modern_browser_value new;")
    .takes("TEXT")
    .default("1"),
];

fn conf(r: &mut ConfReader) -> &mut Browsers {
    Arc::make_mut(&mut r.settings().browsers)
}

fn ancient(r: &mut ConfReader, node: &Node) -> ReadResult {
    if !r.again {
        conf(r).ancient.clear();
        conf(r).netscape4 = false;
    }
    for word in node.args() {
        match word {
            b"netscape4" => conf(r).netscape4 = true,
            text => conf(r).ancient.push(text.into()),
        }
    }
    Ok(())
}

fn modern(r: &mut ConfReader, node: &Node) -> ReadResult {
    if !r.again {
        conf(r).modern.clear();
        conf(r).unlisted = false;
    }
    let word = node.arg(0);
    if node.args_count() == 1 {
        if word != b"unlisted" {
            return Err(ReadFault::Text(format!("no version of browser \"{}\"", show(word))));
        }
        conf(r).unlisted = true;
        return Ok(());
    }
    let names = [
        ("msie", BrowserName::Msie),
        ("gecko", BrowserName::Gecko),
        ("opera", BrowserName::Opera),
        ("safari", BrowserName::Safari),
        ("konqueror", BrowserName::Konqueror),
    ];
    let Ok(name) = choice(word, &names) else {
        return Err(ReadFault::Text(format!("unknown browser name \"{}\"", show(word))));
    };
    let (version, is_one) = browser_version(node.arg(1));
    if !is_one {
        let text = show(node.arg(1));
        return Err(ReadFault::Text(format!("invalid browser version \"{text}\"")));
    }
    conf(r).modern.push((name, version));
    Ok(())
}
