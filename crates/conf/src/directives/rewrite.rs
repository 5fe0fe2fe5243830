//! The rewrite phase: `rewrite`, `set`, `if`, `break`, `return`.
//!
//! Each instruction is stored with its order number. The end of the block sorts them, so that the
//! instructions inside an `if` follow it.

use crate::ast::{DirectiveNode, Node};
use crate::directive::{Args, Contexts, DirectiveSpec, block, flag, own};
use crate::model::{
    Definition, FileTest, IfTest, Matcher, Return, ReturnBody, RewriteOp, RewriteRule, SetTarget,
    SourcePlace, Then,
};
use crate::reader::{ConfReader, ReadFault, ReadResult, invalid_parameter, show};
use crate::regex::LetterCase;
use crate::value as values;
use crate::vars::Var;

const REWRITE: Contexts = Contexts::REWRITE;

pub(super) const TABLE: &[DirectiveSpec] = &[
    own("rewrite", REWRITE, Args::between(2, 3), rewrite)
        .doc("Changes the path where an expression matches it.", "rewrite ^/old/(.*) /new/$1 last;")
        .takes("REGEX TEXT [last | break | redirect | permanent]")
        .without("none"),
    own("return", REWRITE, Args::between(1, 2), return_)
        .doc("Responds at once with a status, a text or a redirect.", "return 301 https://a.com/;")
        .takes("CODE [TEXT] | CODE URL | URL")
        .without("none"),
    own("set", REWRITE, Args::TWO, set)
        .doc("Assigns to a variable of the request.", "set $skip_cache 1;")
        .takes("VARIABLE TEXT")
        .without("none"),
    own("break", REWRITE, Args::NONE, |r, node| {
        push(r, node, RewriteOp::Break);
        Ok(())
    })
    .doc("Ends the rewrite phase of the block.", "break;"),
    block("if", Contexts::SL, Args::at_least(1), if_)
        .doc(
            "Instructions and settings for requests that meet a condition.",
            "if ($request_method = POST) { return 405; }",
        )
        .takes("(CONDITION)"),
    flag("rewrite_log", Contexts::HREWRITE, |r| &mut r.settings().rewrite_log)
        .doc("Whether the results of `rewrite` are logged at `notice`.", "rewrite_log on;"),
    flag("uninitialized_variable_warn", Contexts::HREWRITE, |r| {
        &mut r.settings().uninitialized_variable_warn
    })
    .doc("Whether the use of an unset variable is logged.", "uninitialized_variable_warn off;"),
];

/// The instructions of a block in the order of the file, and their places.
pub(super) fn program(
    ops: &mut Vec<(DirectiveNode, SourcePlace, RewriteOp)>,
) -> (Vec<RewriteOp>, Vec<SourcePlace>) {
    ops.sort_by_key(|(order, _, _)| *order);
    ops.drain(..).map(|(_, place, op)| (op, place)).unzip()
}

fn push(r: &mut ConfReader, node: &Node, op: RewriteOp) {
    let place = r.place(node);
    r.scope.rewrite.push((node.order, place, op));
}

fn rewrite(r: &mut ConfReader, node: &Node) -> ReadResult {
    let regex = r.regex(node.arg(0), LetterCase::Sensitive)?;
    if node.arg(1).is_empty() {
        return Err(ReadFault::Text("empty replacement".to_owned()));
    }
    // A final `?` drops the request's arguments.
    let (text, keeps_args) = match node.arg(1) {
        [text @ .., b'?'] => (text, false),
        text => (text, true),
    };
    let mut then = if is_address(text) { Then::Redirect(302) } else { Then::Continue };
    let redirects = then != Then::Continue;
    if node.args_count() == 3 {
        let written = match node.arg(2) {
            b"last" => Then::Last,
            b"break" => Then::Break,
            b"redirect" => Then::Redirect(302),
            b"permanent" => Then::Redirect(301),
            word => return Err(invalid_parameter(word)),
        };
        // An absolute URL is a redirect, with any flag.
        if !redirects || matches!(written, Then::Redirect(_)) {
            then = written;
        }
    }
    let mark = text.iter().position(|byte| *byte == b'?');
    let (path, args) = match (mark, then) {
        (Some(mark), Then::Continue | Then::Last | Then::Break) => {
            (r.template(&text[..mark])?, Some(r.template(&text[mark + 1..])?))
        }
        _ => (r.template(text)?, None),
    };
    let has_mark = mark.is_some();
    let rule = RewriteRule { regex, path, args, has_mark, keeps_args, then };
    push(r, node, RewriteOp::Rewrite(Box::new(rule)));
    Ok(())
}

fn return_(r: &mut ConfReader, node: &Node) -> ReadResult {
    let word = node.arg(0);
    let made = match values::final_status(word) {
        Some(status) => {
            let body = match node.args_count() {
                1 => ReturnBody::None,
                _ => {
                    let text = r.template(node.arg(1))?;
                    match status {
                        301 | 302 | 303 | 307 | 308 => ReturnBody::Location(text),
                        _ => ReturnBody::Text(text),
                    }
                }
            };
            Return { status, body }
        }
        None if node.args_count() == 1 && is_address(word) => {
            Return { status: 302, body: ReturnBody::Location(r.template(word)?) }
        }
        _ => return Err(ReadFault::Text(format!("invalid return code \"{}\"", show(word)))),
    };
    push(r, node, RewriteOp::Return(made));
    Ok(())
}

fn is_address(word: &[u8]) -> bool {
    [&b"http://"[..], b"https://", b"$scheme"].iter().any(|start| word.starts_with(start))
}

fn set(r: &mut ConfReader, node: &Node) -> ReadResult {
    let name = ConfReader::defined_name(node.arg(0))?;
    let target = match &*name.to_ascii_lowercase() {
        "args" => SetTarget::Args,
        "limit_rate" => SetTarget::LimitRate,
        _ => SetTarget::Named(r.define_as(&name, Definition::Assigned)?),
    };
    let value = r.template(node.arg(1))?;
    push(r, node, RewriteOp::Set { target, value });
    Ok(())
}

fn if_(r: &mut ConfReader, node: &mut Node) -> ReadResult {
    let test = condition(r, node)?;
    let in_server = r.scope.context == Contexts::SERVER;
    let context = if in_server { Contexts::SERVER_IF } else { Contexts::IF };
    let mut scope = r.inner_scope(context);
    scope.matcher = Matcher::If;
    scope.handler = r.scope.handler.clone();
    let location = (!in_server).then(|| super::server::reserve(r, node, &scope));
    let mut scope = r.read_inner(node, scope);
    let ops = std::mem::take(&mut scope.rewrite);
    let Ok(inner) = u16::try_from(ops.len()) else {
        return Err(ReadFault::Text("too many directives in \"if\"".to_owned()));
    };
    if let Some(id) = location {
        super::server::fill(&mut r.http.locations[id.index()], &mut scope);
    }
    push(r, node, RewriteOp::If { test, inner, location });
    r.scope.rewrite.extend(ops);
    Ok(())
}

/// Reads the text between the parentheses.
fn condition(r: &mut ConfReader, node: &Node) -> Result<IfTest, ReadFault> {
    let invalid = |word: &[u8]| ReadFault::Text(format!("invalid condition \"{}\"", show(word)));
    let mut words: Vec<&[u8]> = node.args().collect();
    if let [b"("] = *words {
        return Err(invalid(b"("));
    }
    let Some([b'(', first @ ..]) = words.first().copied() else {
        return Err(invalid(node.arg(0)));
    };
    words[0] = first;
    let last = words.len() - 1;
    let Some([rest @ .., b')']) = words.last().copied() else {
        // As in nginx, the parenthesis of a sole word has been removed by now.
        return Err(invalid(words[last]));
    };
    if rest.is_empty() && last == 0 {
        return Err(invalid(b")"));
    }
    words[last] = rest;
    let start = usize::from(first.is_empty());
    let end = if rest.is_empty() && last > 0 { last } else { last + 1 };
    let words = words.get(start..end).unwrap_or_default();
    let Some((&first, rest)) = words.split_first() else { return Err(invalid(b")")) };
    match (first, rest) {
        ([b'$', name @ ..], []) if !name.is_empty() => Ok(IfTest::True(variable(r, name)?)),
        ([b'$', name @ ..], [operator, operand]) if !name.is_empty() => {
            let var = variable(r, name)?;
            comparison(r, var, operator, operand)
        }
        ([b'-', letter], [path]) => match file_test(*letter) {
            Some(test) => Ok(IfTest::Is(test, r.template(path)?)),
            None => Err(invalid(first)),
        },
        ([b'!', b'-', letter], [path]) => match file_test(*letter) {
            Some(test) => Ok(IfTest::IsNot(test, r.template(path)?)),
            None => Err(invalid(first)),
        },
        _ => Err(invalid(first)),
    }
}

fn variable(r: &mut ConfReader, name: &[u8]) -> Result<Var, ReadFault> {
    r.variable(&show(name))
}

fn comparison(
    r: &mut ConfReader,
    var: Var,
    operator: &[u8],
    operand: &[u8],
) -> Result<IfTest, ReadFault> {
    Ok(match operator {
        b"=" => IfTest::Equal(var, r.template(operand)?),
        b"!=" => IfTest::Differs(var, r.template(operand)?),
        b"~" => IfTest::Matches(var, r.regex(operand, LetterCase::Sensitive)?),
        b"~*" => IfTest::Matches(var, r.regex(operand, LetterCase::Insensitive)?),
        b"!~" => IfTest::Mismatches(var, r.regex(operand, LetterCase::Sensitive)?),
        b"!~*" => IfTest::Mismatches(var, r.regex(operand, LetterCase::Insensitive)?),
        _ => {
            let shown = show(operator);
            return Err(ReadFault::Text(format!("unexpected \"{shown}\" in condition")));
        }
    })
}

const fn file_test(letter: u8) -> Option<FileTest> {
    match letter {
        b'f' => Some(FileTest::File),
        b'd' => Some(FileTest::Directory),
        b'e' => Some(FileTest::Exists),
        b'x' => Some(FileTest::Executable),
        _ => None,
    }
}
