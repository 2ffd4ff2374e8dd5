//! Chat templates: Jinja as `transformers` runs it (its names, white space rules and filters), within bounds.

mod bounded_nesting;
mod json_filter;
mod strict_loops;
mod tags;

use crate::error::{ErrorKind, Result, TextError};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{context, Environment, Error, Value};
use regex::Regex;
use std::fmt;
use std::io;

/// One unit pays for an instruction or 64 bytes of data: less than a second, and 512 MB that a hostile template may
/// hold. A conversation of a million tokens takes some 2 % of it.
const FUEL: u64 = 8_000_000;
/// Published templates have up to 30 KB.
const MAX_SOURCE_BYTES: usize = 1 << 20;
/// No context window holds as much text.
const MAX_OUTPUT_BYTES: usize = 64 << 20;

pub struct ChatTemplate {
    environment: Environment<'static>,
    name: String,
}

/// Formats the time of the render by a C `strftime` format; None where that fails.
pub type FormatTime = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;

pub struct Input<'a> {
    /// JSON texts: an array of messages; an array of tools, or empty for none; an object of further variables, or empty.
    pub messages: &'a str,
    pub tools: &'a str,
    pub variables: &'a str,
    pub add_generation_prompt: bool,
    pub format_time: FormatTime,
}

impl ChatTemplate {
    pub fn new(name: &str, source: &str) -> Result<Self> {
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.map_err(|e| syntax_error(name, &e))?);
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.set_fuel(Some(FUEL));
        environment.set_recursion_limit(bounded_nesting::MAX_CALL_DEPTH);
        environment.add_filter("tojson", json_filter::tojson);
        environment.add_filter(strict_loops::FILTER, strict_loops::iterable);
        environment.add_filter(bounded_nesting::FILTER, bounded_nesting::bounded);
        environment.add_filter(bounded_nesting::MEMBER_FILTER, bounded_nesting::bounded_member);
        environment.add_function("raise_exception", raise_exception);
        let source = checked(source)
            .map_err(|what| TextError { kind: ErrorKind::TemplateSyntax, message: format!("{name}: {what}") })?;
        environment.add_template_owned(name.to_string(), source).map_err(|e| syntax_error(name, &e))?;
        Ok(Self { environment, name: name.to_string() })
    }

    pub fn render(&self, input: Input) -> Result<String> {
        let variables = self.json(input.variables, "variables")?;
        let messages = self.json(input.messages, "messages")?;
        let tools = self.json(input.tools, "tools")?;
        let format_time = input.format_time;
        let strftime_now = Value::from_function(move |format: String| {
            format_time(&format).ok_or_else(|| {
                Error::new(minijinja::ErrorKind::InvalidOperation, format!("strftime_now: bad format \"{format}\""))
            })
        });
        let fixed = context! {
            messages => Value::from(Serde(&messages)),
            tools => Value::from(Serde(&tools)),
            add_generation_prompt => input.add_generation_prompt,
            strftime_now => strftime_now,
        };
        // Variables of the caller come before `documents`, which is none unless given.
        let all = if variables.is_object() {
            context! { ..fixed, ..Value::from(Serde(&variables)), ..context! { documents => () } }
        } else {
            context! { ..fixed, ..context! { documents => () } }
        };
        let template = self.environment.get_template(&self.name).map_err(|e| self.render_error(&e))?;
        let mut out = BoundedText { bytes: Vec::new(), too_long: false };
        let rendered = template.render_captured_to(all, &mut out).map(|_| ());
        if out.too_long {
            return Err(self.runtime_error(format!("the rendering is longer than {MAX_OUTPUT_BYTES} bytes")));
        }
        rendered.map_err(|e| self.render_error(&e))?;
        String::from_utf8(out.bytes).map_err(|e| self.runtime_error(e.to_string()))
    }

    fn json(&self, text: &str, what: &str) -> Result<serde_json::Value> {
        if text.is_empty() {
            return Ok(serde_json::Value::Null);
        }
        serde_json::from_str(text).map_err(|e| self.runtime_error(format!("{what}: {e}")))
    }

    fn render_error(&self, error: &Error) -> TextError {
        let mut cause: Option<&dyn std::error::Error> = Some(error);
        while let Some(current) = cause {
            if let Some(Raised(message)) = current.downcast_ref::<Raised>() {
                return TextError { kind: ErrorKind::TemplateRaised, message: message.clone() };
            }
            cause = current.source();
        }
        if error.kind() == minijinja::ErrorKind::OutOfFuel {
            return self.runtime_error("the template does not end within its allowance of work".into());
        }
        let line = error.line().map_or(String::new(), |line| format!("line {line}: "));
        let text = error.detail().map_or_else(|| error.kind().to_string(), |d| format!("{}: {d}", error.kind()));
        self.runtime_error(format!("{line}{text}"))
    }

    fn runtime_error(&self, text: String) -> TextError {
        TextError { kind: ErrorKind::TemplateRuntime, message: format!("{}: {text}", self.name) }
    }
}

fn syntax_error(name: &str, error: &Error) -> TextError {
    let line = error.line().map_or(String::new(), |line| format!("line {line}: "));
    let text = error.detail().map_or_else(|| error.kind().to_string(), str::to_string);
    TextError { kind: ErrorKind::TemplateSyntax, message: format!("{name}: {line}{text}") }
}

/// What a template said through `raise_exception`.
#[derive(Debug)]
struct Raised(String);

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Raised {}

fn raise_exception(message: String) -> std::result::Result<Value, Error> {
    Err(Error::new(minijinja::ErrorKind::InvalidOperation, "raised by the template").with_source(Raised(message)))
}

/// The source with what makes minijinja as strict as Python and safe with what strangers wrote; lines stay where they
/// are.
fn checked(source: &str) -> std::result::Result<String, String> {
    if source.len() > MAX_SOURCE_BYTES {
        return Err(format!("has {} bytes, at most {MAX_SOURCE_BYTES} are read", source.len()));
    }
    let nesting = bounded_nesting::TagCheck::default();
    tags::rewrite_tags(
        &without_generation_marks(source),
        |tag| nesting.check(tag),
        |tag| strict_loops::checked_loop(tag).or_else(|| bounded_nesting::bounded_set(tag)),
    )
}

/// `{% generation %}` marks the assistant's words for training. It prints what it holds, as `{% if true %}` does.
fn without_generation_marks(source: &str) -> String {
    match Regex::new(r"\{%([-+]?)\s*(end)?generation\s*([-+]?)%\}") {
        Ok(marks) => marks
            .replace_all(source, |found: &regex::Captures| {
                let tag = if found.get(2).is_some() { "endif" } else { "if true" };
                format!("{{%{} {tag} {}%}}", &found[1], &found[3])
            })
            .into_owned(),
        Err(_) => source.to_string(),
    }
}

struct BoundedText {
    bytes: Vec<u8>,
    too_long: bool,
}

impl io::Write for BoundedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > MAX_OUTPUT_BYTES {
            self.too_long = true;
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
