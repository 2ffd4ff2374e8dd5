//! Free text with tagged parts that fit schemas, as vLLM's `structural_tag` has it:
//! {"structures": [{"begin": "<f=a>", "schema": {...}, "end": "</f>"}], "triggers": ["<f="]}.

use super::spec::{bad, check_patterns, with_bounded_white_space, Kind};
use crate::error::Result;
use serde_json::Value;

const MAX_TAGS: usize = 256;

/// A Lark grammar: wherever the text comes to a trigger, it goes on as one of the structures that begin with it.
pub fn lark_of(text: &str) -> Result<String> {
    let kind = Kind::StructuralTag;
    let tag: Value = serde_json::from_str(text).map_err(|e| bad(kind, format!("not JSON: {e}")))?;
    if tag.get("format").is_some() {
        return Err(bad(kind, "format: only structures and triggers are supported"));
    }
    let triggers = texts_of(&tag, "triggers")?;
    let structures = match tag["structures"].as_array() {
        Some(structures) if (1..=MAX_TAGS).contains(&structures.len()) => structures,
        _ => return Err(bad(kind, format!("structures: expected a list of 1 to {MAX_TAGS}"))),
    };
    let mut alternatives = vec![Vec::new(); triggers.len()];
    for (i, structure) in structures.iter().enumerate() {
        let text_of = |name: &str| match structure[name].as_str() {
            Some(text) if !text.is_empty() => Ok(text),
            _ => Err(bad(kind, format!("structures[{i}].{name}: expected a string that is not empty"))),
        };
        let (begin, end) = (text_of("begin")?, text_of("end")?);
        // Where several triggers fit, the text is at the shortest one first.
        let first = (0..triggers.len()).filter(|&t| begin.starts_with(triggers[t])).min_by_key(|&t| triggers[t].len());
        let Some(trigger) = first else {
            return Err(bad(kind, format!("structures[{i}].begin: does not begin with one of the triggers")));
        };
        let schema = structure.get("schema").cloned().unwrap_or(Value::Bool(true));
        check_patterns(kind, &schema)?;
        let schema = with_bounded_white_space(kind, schema)?;
        let rest = &begin[triggers[trigger].len()..];
        let rest = if rest.is_empty() { String::new() } else { Value::from(rest).to_string() };
        alternatives[trigger].push(format!("{rest} %json {schema} {}", Value::from(end)));
    }
    let mut rules = String::new();
    let mut used = Vec::new();
    for (i, (trigger, alternatives)) in triggers.iter().zip(&alternatives).enumerate() {
        if alternatives.is_empty() {
            continue;
        }
        used.push(format!("tag_{i}"));
        rules += &format!("tag_{i}: trigger_{i} ( {} )\n", alternatives.join(" | "));
        rules += &format!("trigger_{i}[lazy]: /(.|\\n)*/ {}\n", Value::from(*trigger));
    }
    Ok(format!("start: ( {} )* text\ntext: /(.|\\n)*/\n{rules}", used.join(" | ")))
}

fn texts_of<'a>(tag: &'a Value, name: &str) -> Result<Vec<&'a str>> {
    let texts: Option<Vec<&str>> =
        tag[name].as_array().map(|items| items.iter().map(|item| item.as_str().unwrap_or_default()).collect());
    match texts {
        Some(texts) if (1..=MAX_TAGS).contains(&texts.len()) && texts.iter().all(|text| !text.is_empty()) => Ok(texts),
        _ => Err(bad(Kind::StructuralTag, format!("{name}: expected 1 to {MAX_TAGS} strings, none of them empty"))),
    }
}
