//! The merging loop of byte-pair encoding, O(n log n) in the length of a word: the best pair of neighbours is joined
//! until no pair can be.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

pub const NO_TOKEN: u32 = u32::MAX;

/// A stretch of the word that has become one token (or one character without a token, `NO_TOKEN`).
#[derive(Clone, Copy)]
pub struct Symbol {
    pub id: u32,
    pub start: usize,
    pub len: usize, // 0: joined to the symbol on its left
    prev: usize,
    next: usize,
}

impl Symbol {
    pub fn range(&self) -> Range<usize> {
        self.start..self.start + self.len
    }
}

const NONE: usize = usize::MAX;

#[derive(Default)]
pub struct Word {
    symbols: Vec<Symbol>,
    heap: BinaryHeap<Candidate>, // empty between merges; kept for its memory
}

/// (rank, left, right, joined length, new token): the lowest rank first, and of equal ones the leftmost.
type Candidate = Reverse<(u32, usize, usize, usize, u32)>;

impl Word {
    pub fn clear(&mut self) {
        self.symbols.clear();
    }

    pub fn push(&mut self, id: u32, bytes: Range<usize>) {
        let at = self.symbols.len();
        if let Some(last) = self.symbols.last_mut() {
            last.next = at;
        }
        let prev = if at == 0 { NONE } else { at - 1 };
        self.symbols.push(Symbol { id, start: bytes.start, len: bytes.len(), prev, next: NONE });
    }

    /// `join(left, right)`: rank and token of the pair, None where it cannot be joined.
    pub fn merge(&mut self, join: impl Fn(&Symbol, &Symbol) -> Option<(u32, u32)>) {
        let mut heap = std::mem::take(&mut self.heap);
        for right in 1..self.symbols.len() {
            self.offer(&mut heap, right - 1, right, &join);
        }
        while let Some(Reverse((_, left, right, len, id))) = heap.pop() {
            let (l, r) = (self.symbols[left], self.symbols[right]);
            // Offers made before one of the two grew or vanished are void.
            if l.len == 0 || r.len == 0 || l.len + r.len != len {
                continue;
            }
            self.symbols[left] = Symbol { id, len, next: r.next, ..l };
            self.symbols[right].len = 0;
            if r.next != NONE {
                self.symbols[r.next].prev = left;
                self.offer(&mut heap, left, r.next, &join);
            }
            if l.prev != NONE {
                self.offer(&mut heap, l.prev, left, &join);
            }
        }
        self.heap = heap;
    }

    fn offer(
        &self,
        heap: &mut BinaryHeap<Candidate>,
        left: usize,
        right: usize,
        join: &impl Fn(&Symbol, &Symbol) -> Option<(u32, u32)>,
    ) {
        let (l, r) = (&self.symbols[left], &self.symbols[right]);
        if let Some((rank, id)) = join(l, r) {
            heap.push(Reverse((rank, left, right, l.len + r.len, id)));
        }
    }

    /// What is left, in order.
    pub fn symbols(&self) -> impl Iterator<Item = &Symbol> {
        self.symbols.iter().filter(|s| s.len > 0)
    }
}
