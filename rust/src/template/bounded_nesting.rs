//! Parsing, printing, comparing and freeing all recurse over what is nested, and a stack that overflows ends the process.
//! So no tag of a template may nest deep, nor may a value that it keeps: what `set` stores passes through a filter that
//! refuses deep values and those through which a namespace could reach itself.

use super::tags::{first_word, scan};
use minijinja::value::{ObjectRepr, Value};
use minijinja::{Error, ErrorKind, State};
use std::cell::{Cell, RefCell};

/// Of a value that `set` stores. Conversations and schemas of tools have some ten levels.
const MAX_VALUE_DEPTH: usize = 64;
/// Of operators, brackets and filters in one tag, which bounds how much deeper one expression makes a value. Published
/// templates have up to 25.
const MAX_TAG_DEPTH: usize = 128;
/// Each `elif` nests in the one before, and the count runs over the whole source. Published templates have up to 20.
const MAX_ELIFS: usize = 1000;
/// A macro call takes 4. With MAX_TAG_DEPTH it bounds the depth of what macros hand each other.
pub const MAX_CALL_DEPTH: usize = 200;
/// Members that one rendering may look at to find how deep the values are.
const MAX_MEMBERS: usize = 4_000_000;

pub const FILTER: &str = "_bounded";
pub const MEMBER_FILTER: &str = "_bounded_member";

/// Looks at all tags of one source.
#[derive(Default)]
pub struct TagCheck {
    elifs: Cell<usize>,
}

impl TagCheck {
    pub fn check(&self, tag: &str) -> Result<(), String> {
        if depth(tag) > MAX_TAG_DEPTH {
            return Err(format!("an expression is nested more than {MAX_TAG_DEPTH} deep"));
        }
        if tag.starts_with("{%") && first_word(tag) == "elif" {
            self.elifs.set(self.elifs.get() + 1);
            if self.elifs.get() > MAX_ELIFS {
                return Err(format!("more than {MAX_ELIFS} elif"));
            }
        }
        Ok(())
    }
}

/// At least how deep the syntax tree of the tag is: operators in a row nest, members of a list do not.
fn depth(tag: &str) -> usize {
    const WORDS: [&str; 6] = ["not", "and", "or", "if", "is", "in"];
    let bytes = tag.as_bytes();
    let in_word = |at: usize| bytes.get(at).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    let (now, deepest) = (Cell::new(0usize), Cell::new(0usize));
    // Of each open bracket: `now` at its beginning, and the most that one of its members came to.
    let open = RefCell::new(Vec::new());
    scan(tag, 2, |at, _| {
        let mut open = open.borrow_mut();
        match bytes[at] {
            b'(' | b'[' | b'{' => {
                now.set(now.get() + 1);
                open.push((now.get(), now.get()));
            }
            b',' => {
                if let Some((begin, most)) = open.last_mut() {
                    *most = now.get().max(*most);
                    now.set(*begin);
                }
            }
            b')' | b']' | b'}' => {
                if let Some((_, most)) = open.pop() {
                    now.set(now.get().max(most));
                }
            }
            b if b.is_ascii_punctuation() && b != b'_' && b != b':' => now.set(now.get() + 1),
            _ if !in_word(at.wrapping_sub(1)) => {
                let is_operator = |word: &&str| tag[at..].starts_with(*word) && !in_word(at + word.len());
                now.set(now.get() + usize::from(WORDS.iter().any(is_operator)));
            }
            _ => {}
        }
        deepest.set(deepest.get().max(now.get()));
        false
    });
    deepest.get()
}

/// `{% set x = E %}` as `{% set x = (E)|_bounded %}`; None where the tag sets nothing or only text.
pub fn bounded_set(tag: &str) -> Option<String> {
    if first_word(tag) != "set" {
        return None;
    }
    let close = tag.strip_suffix("%}")?.trim_end_matches(['-', '+']).len();
    let equals = scan(tag, 2, |at, depth| depth == 0 && tag.as_bytes()[at] == b'=').filter(|at| *at < close);
    let filter_of = |target: &str| if target.contains('.') { MEMBER_FILTER } else { FILTER };
    if let Some(at) = equals {
        let value = tag[at + 1..close].trim();
        return Some(format!("{} ({value})|{} {}", &tag[..=at], filter_of(&tag[..at]), &tag[close..]));
    }
    // A block: its text may pass through filters, whose arguments can be anything.
    let bar = scan(tag, 2, |at, depth| depth == 0 && tag.as_bytes()[at] == b'|').filter(|at| *at < close)?;
    Some(format!("{}|{} {}", tag[..close].trim_end(), filter_of(&tag[..bar]), &tag[close..]))
}

/// A value for a variable.
pub fn bounded(state: &mut State, value: Value) -> Result<Value, Error> {
    check(state, value, false)
}

/// A value for a member of a namespace.
pub fn bounded_member(state: &mut State, value: Value) -> Result<Value, Error> {
    check(state, value, true)
}

fn check(state: &mut State, value: Value, is_member: bool) -> Result<Value, Error> {
    const LEFT: &str = "members left to look at";
    let left = state.get_temp(LEFT).and_then(|left| left.as_usize()).unwrap_or(MAX_MEMBERS);
    let mut walk = Walk { left, is_member };
    let value = walk.made_at_once(value)?;
    walk.look(&value, 0)?;
    state.set_temp(LEFT, Value::from(walk.left));
    Ok(value)
}

struct Walk {
    left: usize,
    is_member: bool,
}

impl Walk {
    fn count(&mut self) -> Result<(), Error> {
        self.left = self.left.checked_sub(1).ok_or(ErrorKind::OutOfFuel)?;
        Ok(())
    }

    /// The value with its members made, where it would make them when asked: a chain of such values hides its depth.
    fn made_at_once(&mut self, value: Value) -> Result<Value, Error> {
        let Some(object) = value.as_object() else { return Ok(value) };
        let is_merged = object.type_name().contains("::merge_object::");
        if matches!(object.repr(), ObjectRepr::Iterable) || (matches!(object.repr(), ObjectRepr::Seq) && is_merged) {
            let items = value.try_iter()?.map(|item| self.count().map(|()| item));
            return Ok(Value::from(items.collect::<Result<Vec<Value>, Error>>()?));
        }
        if is_merged {
            let pairs = object.try_iter_pairs().into_iter().flatten();
            let pairs = pairs.map(|pair| self.count().map(|()| pair));
            return Ok(Value::from_iter(pairs.collect::<Result<Vec<(Value, Value)>, Error>>()?));
        }
        Ok(value)
    }

    fn look(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        self.count()?;
        let Some(object) = value.as_object() else { return Ok(()) };
        if depth > MAX_VALUE_DEPTH {
            return Err(refused(format!("a value is nested more than {MAX_VALUE_DEPTH} deep")));
        }
        if object.is::<Vec<Value>>() || object.type_name().ends_with("::Tuple") {
            for item in value.try_iter()? {
                self.look(&item, depth + 1)?;
            }
        } else if object.type_name().starts_with("indexmap::map::IndexMap<") {
            for (key, member) in object.try_iter_pairs().into_iter().flatten() {
                self.look(&key, depth + 1)?;
                self.look(&member, depth + 1)?;
            }
        } else if self.is_member {
            // A namespace, a macro or a loop can lead back to the namespace.
            return Err(refused("a namespace holds text, numbers, lists and dicts only".into()));
        }
        Ok(())
    }
}

fn refused(what: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, what)
}
