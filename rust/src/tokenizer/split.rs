//! Cuts text into words by the rules of a pre-tokenizer, in time linear in the text.
//!
//! The patterns end in `\s+(?!\S)|\s+`: white space before a word leaves its last character to that word. A backtracking
//! engine would be needed for the look-ahead alone, so it is done here by hand, and the rest by an automaton.

use super::pre_table::{Pre, Rule};
use crate::error::{ErrorKind, Result, TextError};
use regex::Regex;
use std::ops::Range;

enum Step {
    /// `newline_first`: an alternative before the white space one takes runs up to their last line end.
    Pattern {
        regex: Regex,
        blank: Blank,
        newline_first: bool,
    },
    DigitGroups {
        at_boundary: bool,
    },
}

/// What becomes of a run of white space that no other alternative took.
#[derive(Clone, Copy, PartialEq)]
enum Blank {
    /// It is as the pattern matched it.
    AsMatched,
    /// Its last character is left to a word that follows.
    LeaveOne,
    /// The same, and the rest falls into the largest of 512, 256, .. 4, 2, 1 characters.
    Cascade,
}

pub struct Splitter {
    steps: Vec<Step>,
}

const LEAVE_ONE: [&str; 2] = [r"\s+(?!\S)|\s+", r"\s+(?!\S)"];
const CASCADE: &str = r"\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}";

impl Splitter {
    pub fn new(pre: &Pre) -> Result<Self> {
        let steps = pre.rules.iter().map(step_of).collect::<Result<_>>()?;
        Ok(Self { steps })
    }

    /// The words of `text`, in order, none of them empty; together they are the text.
    pub fn split(&self, text: &str) -> Vec<Range<usize>> {
        let mut pieces = Vec::new();
        if !text.is_empty() {
            pieces.push(0..text.len());
        }
        for step in &self.steps {
            let mut next = Vec::with_capacity(pieces.len() * 2);
            for piece in pieces {
                let base = piece.start;
                let mut emit = |r: Range<usize>| {
                    if r.start < r.end {
                        next.push(base + r.start..base + r.end)
                    }
                };
                match step {
                    Step::Pattern { regex, blank, newline_first } => {
                        by_pattern(&text[piece], regex, *blank, *newline_first, &mut emit)
                    }
                    Step::DigitGroups { at_boundary } => by_digits(&text[piece], *at_boundary, &mut emit),
                }
            }
            pieces = next;
        }
        pieces
    }
}

fn step_of(rule: &Rule) -> Result<Step> {
    let pattern = match rule {
        Rule::DigitGroups => return Ok(Step::DigitGroups { at_boundary: false }),
        Rule::DigitGroupsAtBoundary => return Ok(Step::DigitGroups { at_boundary: true }),
        Rule::Regex(pattern) => *pattern,
    };
    let (body, blank) = if let Some(body) = pattern.strip_suffix(CASCADE) {
        (body, Blank::Cascade)
    } else if let Some(body) = LEAVE_ONE.iter().find_map(|end| pattern.strip_suffix(end)) {
        (body, Blank::LeaveOne)
    } else {
        (pattern, Blank::AsMatched)
    };
    let whole = if blank == Blank::AsMatched { body.to_string() } else { format!(r"{body}\s+") };
    let regex = Regex::new(&whole)
        .map_err(|e| TextError { kind: ErrorKind::Internal, message: format!("pre-tokenizer pattern {whole}: {e}") })?;
    Ok(Step::Pattern { regex, blank, newline_first: body.contains(r"\s*[\r\n]") })
}

fn by_pattern(text: &str, regex: &Regex, blank: Blank, newline_first: bool, emit: &mut impl FnMut(Range<usize>)) {
    let mut pos = 0;
    while pos < text.len() {
        let Some(found) = regex.find_at(text, pos) else { break };
        emit(pos..found.start());
        let (start, mut end) = (found.start(), found.end());
        let word = found.as_str();
        if blank != Blank::AsMatched
            && word.chars().all(char::is_whitespace)
            && !(newline_first && word.ends_with(['\r', '\n']))
        {
            let last = word.chars().next_back().map_or(0, char::len_utf8);
            if end < text.len() && last < word.len() {
                end -= last;
            }
            if blank == Blank::Cascade {
                cascade(&text[start..end], start, emit);
                pos = end;
                continue;
            }
        }
        emit(start..end);
        pos = end;
    }
    emit(pos..text.len());
}

fn cascade(run: &str, base: usize, emit: &mut impl FnMut(Range<usize>)) {
    let ends: Vec<usize> = run.char_indices().map(|(i, c)| i + c.len_utf8()).collect();
    let (mut done, mut start) = (0, 0);
    while done < ends.len() {
        let left = ends.len() - done;
        done += [512, 256, 128, 64, 32, 16, 8, 4, 2, 1].into_iter().find(|n| *n <= left).unwrap_or(1);
        emit(base + start..base + ends[done - 1]);
        start = ends[done - 1];
    }
}

fn by_digits(text: &str, at_boundary: bool, emit: &mut impl FnMut(Range<usize>)) {
    let mut start = 0; // of what is not yet emitted
    let mut chars = text.char_indices().peekable();
    while let Some((begin, c)) = chars.next() {
        if !c.is_numeric() {
            continue;
        }
        let mut digits = vec![begin];
        while let Some((at, _)) = chars.next_if(|(_, c)| c.is_numeric()) {
            digits.push(at);
        }
        let next = chars.peek().copied();
        if at_boundary && next.is_some_and(|(_, c)| c.is_alphanumeric() || c == '_') {
            continue;
        }
        emit(start..begin);
        digits.push(next.map_or(text.len(), |(at, _)| at));
        let count = digits.len() - 1;
        let mut from = 0;
        let mut to = if count % 3 == 0 { 3 } else { count % 3 };
        while to <= count {
            emit(digits[from]..digits[to]);
            from = to;
            to += 3;
        }
        start = digits[count];
    }
    emit(start..text.len());
}
