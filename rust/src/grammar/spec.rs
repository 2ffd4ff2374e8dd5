//! What a text must fit, as it comes from a request, and its limits.

use super::{lark, structural_tag};
use crate::error::{ErrorKind, Result, TextError};
use llguidance::api::TopLevelGrammar;
use serde_json::{json, Value};

/// The same numbers as `GrammarKind` in src/text/rust_ffi.h.
#[derive(Clone, Copy, PartialEq)]
#[repr(i32)]
pub enum Kind {
    JsonSchema = 0,
    JsonObject = 1,
    Regex = 2,
    Choice = 3,
    Lark = 4,
    StructuralTag = 5,
}

impl Kind {
    pub fn from_number(number: i32) -> Option<Self> {
        [Self::JsonSchema, Self::JsonObject, Self::Regex, Self::Choice, Self::Lark, Self::StructuralTag]
            .into_iter()
            .find(|&kind| kind as i32 == number)
    }

    fn name(self) -> &'static str {
        match self {
            Self::JsonSchema => "JSON schema",
            Self::JsonObject => "JSON object",
            Self::Regex => "regex",
            Self::Choice => "choice",
            Self::Lark => "grammar",
            Self::StructuralTag => "structural tag",
        }
    }
}

/// Of patterns the compiler's time grows with the square: 16 KiB of "a?a?a?..." take a second.
const MAX_PATTERN_BYTES: usize = 16 * 1024;
/// Of a schema or all choices together; 6000 properties take 3 seconds.
const MAX_SCHEMA_BYTES: usize = 128 * 1024;
/// Of each pattern in a schema.
const MAX_INNER_PATTERN_BYTES: usize = 2 * 1024;
const MAX_NESTING: usize = 64;
/// The compilers recurse on rules that lead to each other, as many as a text has room for (4000 definitions of a
/// schema): 8 MiB do for some 1500. Only what is used takes memory.
const COMPILER_STACK_BYTES: usize = 256 * 1024 * 1024;
/// Of one automaton, about 1.5 KiB each.
pub const MAX_LEXER_STATES: usize = 50_000;
/// A model that is unsure may write white space without end: JSON needs none.
const JSON_WHITE_SPACE: &str = r"[\x20\x0A\x0D\x09]{1,8}";

pub fn bad(kind: Kind, error: impl std::fmt::Display) -> TextError {
    TextError { kind: ErrorKind::BadGrammar, message: format!("{}: {}", kind.name(), first_words(error)) }
}

/// The compiler's own words on one line, without what it adds for its developers.
pub fn first_words(error: impl std::fmt::Display) -> String {
    const MOST: usize = 500;
    let text = error.to_string();
    let text = text.split("\n<").next().unwrap_or_default();
    let mut line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = line.char_indices().nth(MOST) {
        line.truncate(end);
        line.push_str("...");
    }
    line
}

pub fn grammar_of(kind: Kind, texts: &[&str]) -> Result<TopLevelGrammar> {
    let bytes: usize = texts.iter().map(|text| text.len()).sum();
    let most = match kind {
        Kind::Regex | Kind::Lark => MAX_PATTERN_BYTES,
        _ => MAX_SCHEMA_BYTES,
    };
    if bytes > most {
        return Err(bad(kind, format!("{bytes} bytes, at most {most} are accepted")));
    }
    let text = texts.first().copied().unwrap_or_default();
    match kind {
        Kind::JsonSchema => {
            let schema = serde_json::from_str(text).map_err(|e| bad(kind, format!("not JSON: {e}")))?;
            json_schema(kind, schema)
        }
        Kind::JsonObject => json_schema(kind, json!({"type": "object"})),
        Kind::Regex => {
            check_nesting(kind, text)?;
            Ok(TopLevelGrammar::from_regex(text))
        }
        Kind::Choice => choice(texts),
        Kind::Lark => Ok(TopLevelGrammar::from_lark(lark::bounded(text)?)),
        Kind::StructuralTag => Ok(TopLevelGrammar::from_lark(structural_tag::lark_of(text)?)),
    }
}

fn json_schema(kind: Kind, schema: Value) -> Result<TopLevelGrammar> {
    check_patterns(kind, &schema)?;
    Ok(TopLevelGrammar::from_json_schema(with_bounded_white_space(kind, schema)?))
}

pub fn with_bounded_white_space(kind: Kind, schema: Value) -> Result<Value> {
    let mut schema = match schema {
        Value::Bool(true) => json!({}),
        Value::Object(_) => schema,
        Value::Bool(false) => return Err(bad(kind, "false: no text fits it")),
        _ => return Err(bad(kind, "neither an object nor true")),
    };
    // Takes the place of options that the request may have put there.
    schema["x-guidance"] = json!({"whitespace_flexible": true, "whitespace_pattern": JSON_WHITE_SPACE});
    Ok(schema)
}

fn choice(texts: &[&str]) -> Result<TopLevelGrammar> {
    if texts.is_empty() || texts.iter().any(|text| text.is_empty()) {
        return Err(bad(Kind::Choice, "expected at least one text, none of them empty"));
    }
    // Strings of the grammar are written as in JSON.
    let strings: Vec<String> = texts.iter().map(|text| Value::from(*text).to_string()).collect();
    Ok(TopLevelGrammar::from_lark(format!("start: {}", strings.join(" | "))))
}

/// Groups of a pattern: its compiler recurses on them. (Those of Lark and JSON have limits of their own.)
fn check_nesting(kind: Kind, pattern: &str) -> Result<()> {
    let mut depth = 0usize;
    let mut chars = pattern.bytes();
    while let Some(c) = chars.next() {
        match c {
            b'\\' => drop(chars.next()),
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_NESTING {
            return Err(bad(kind, format!("groups nest deeper than {MAX_NESTING}")));
        }
    }
    Ok(())
}

pub fn check_patterns(kind: Kind, schema: &Value) -> Result<()> {
    let check = |pattern: &str| {
        if pattern.len() > MAX_INNER_PATTERN_BYTES {
            let len = pattern.len();
            return Err(bad(kind, format!("a pattern of {len} bytes, at most {MAX_INNER_PATTERN_BYTES} are accepted")));
        }
        check_nesting(kind, pattern)
    };
    match schema {
        Value::Array(items) => items.iter().try_for_each(|item| check_patterns(kind, item)),
        Value::Object(fields) => fields.iter().try_for_each(|(key, value)| {
            match (key.as_str(), value) {
                ("pattern", Value::String(pattern)) => check(pattern)?,
                ("patternProperties", Value::Object(properties)) => properties.keys().try_for_each(|key| check(key))?,
                _ => {}
            }
            check_patterns(kind, value)
        }),
        _ => Ok(()),
    }
}

/// Runs `compile` where its recursion has room.
pub fn with_deep_stack<T: Send>(compile: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(COMPILER_STACK_BYTES).spawn_scoped(scope, compile);
        let joined = thread.map_err(|e| e.to_string()).map(|running| running.join());
        match joined {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(internal("the compiler of grammars failed")),
            Err(why) => Err(internal(&format!("no thread to compile a grammar: {why}"))),
        }
    })
}

pub fn internal(message: &str) -> TextError {
    TextError { kind: ErrorKind::Internal, message: message.to_string() }
}
