//! The filter `tojson` as `transformers` defines it: Python's `json.dumps` without escaping for HTML.

use minijinja::value::Kwargs;
use minijinja::{Error, ErrorKind, Value};
use std::fmt::Write;

struct Style {
    indent: Option<String>,
    item: String,
    key: String,
    sort_keys: bool,
    ascii: bool,
}

/// `tojson(ensure_ascii=False, indent=None, separators=None, sort_keys=False)`; `indent` may be the first argument.
pub fn tojson(value: Value, indent: Option<Value>, options: Kwargs) -> Result<Value, Error> {
    if value.is_undefined() {
        return Err(Error::new(ErrorKind::BadSerialization, "an undefined value is not JSON"));
    }
    let indent = match indent.or(options.get::<Option<Value>>("indent")?).filter(|v| !v.is_none() && !v.is_undefined())
    {
        None => None,
        Some(width) => match width.as_str() {
            Some(text) => Some(text.to_string()),
            None => Some(" ".repeat(usize::try_from(i64::try_from(width)?.clamp(0, 64)).unwrap_or(0))),
        },
    };
    let separators = options.get::<Option<Vec<String>>>("separators")?;
    let (item, key) = match separators.as_deref() {
        Some([item, key]) => (item.clone(), key.clone()),
        Some(_) => return Err(Error::new(ErrorKind::InvalidOperation, "tojson: separators: expected two strings")),
        None => ((if indent.is_some() { "," } else { ", " }).into(), ": ".into()),
    };
    let style = Style {
        indent,
        item,
        key,
        sort_keys: options.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
        ascii: options.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false),
    };
    options.assert_all_used()?;
    let json = serde_json::to_value(&value).map_err(|e| Error::new(ErrorKind::BadSerialization, e.to_string()))?;
    let mut out = String::new();
    write_value(&mut out, &json, &style, 0);
    Ok(Value::from(out))
}

fn write_value(out: &mut String, value: &serde_json::Value, style: &Style, depth: usize) {
    match value {
        serde_json::Value::Null => out.push_str("null"),
        serde_json::Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        serde_json::Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(float) => out.push_str(&python_float(float)),
            None => out.push_str(&number.to_string()),
        },
        serde_json::Value::String(text) => write_string(out, text, style.ascii),
        serde_json::Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                begin_item(out, style, depth + 1, i);
                write_value(out, item, style, depth + 1);
            }
            end_items(out, style, depth, items.is_empty());
            out.push(']');
        }
        serde_json::Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            if style.sort_keys {
                members.sort_by_key(|(key, _)| *key);
            }
            out.push('{');
            for (i, (key, item)) in members.iter().enumerate() {
                begin_item(out, style, depth + 1, i);
                write_string(out, key, style.ascii);
                out.push_str(&style.key);
                write_value(out, item, style, depth + 1);
            }
            end_items(out, style, depth, members.is_empty());
            out.push('}');
        }
    }
}

fn begin_item(out: &mut String, style: &Style, depth: usize, index: usize) {
    if index > 0 {
        out.push_str(&style.item);
    }
    new_line(out, style, depth);
}

fn end_items(out: &mut String, style: &Style, depth: usize, empty: bool) {
    if !empty {
        new_line(out, style, depth);
    }
}

fn new_line(out: &mut String, style: &Style, depth: usize) {
    if let Some(indent) = &style.indent {
        out.push('\n');
        (0..depth).for_each(|_| out.push_str(indent));
    }
}

fn write_string(out: &mut String, text: &str, ascii: bool) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            c if c < ' ' || (ascii && !c.is_ascii()) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Python's `repr` of a float: the shortest digits that read back, with an exponent below 1e-4 and from 1e16 on.
fn python_float(value: f64) -> String {
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if value != 0.0 && !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    let plain = format!("{value}");
    if plain.contains('.') {
        plain
    } else {
        plain + ".0"
    }
}
