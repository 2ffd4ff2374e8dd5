//! The border to C++ for grammars; see ffi.rs.
#![allow(clippy::missing_safety_doc)] // the contract is in the header

use crate::error::{corrupt, Result};
use crate::ffi::{free, guarded, many, HrError, HrSlice};
use crate::grammar::{Factory, Grammar, Kind};

#[no_mangle]
pub unsafe extern "C" fn hr_grammar_factory_new(
    words: *const HrSlice,
    num_words: usize,
    ends: *const u32,
    num_ends: usize,
    error: *mut HrError,
) -> *mut Factory {
    guarded(error, std::ptr::null_mut(), || {
        let words = many(words, num_words).iter().map(|word| word.bytes().to_vec()).collect();
        Ok(Box::into_raw(Box::new(Factory::new(words, many(ends, num_ends))?)))
    })
}

#[no_mangle]
pub unsafe extern "C" fn hr_grammar_factory_free(factory: *mut Factory) {
    free(factory);
}

#[no_mangle]
pub unsafe extern "C" fn hr_grammar_compile(
    factory: *const Factory,
    kind: i32,
    texts: *const HrSlice,
    num_texts: usize,
    error: *mut HrError,
) -> *mut Grammar {
    guarded(error, std::ptr::null_mut(), || {
        let kind = Kind::from_number(kind).ok_or_else(|| corrupt("no such kind of grammar"))?;
        let texts = many(texts, num_texts).iter().map(|t| t.text("grammar")).collect::<Result<Vec<&str>>>()?;
        Ok(Box::into_raw(Box::new((*factory).compile(kind, &texts)?)))
    })
}

#[no_mangle]
pub unsafe extern "C" fn hr_grammar_clone(grammar: *const Grammar, error: *mut HrError) -> *mut Grammar {
    guarded(error, std::ptr::null_mut(), || Ok(Box::into_raw(Box::new((*grammar).clone()))))
}

#[no_mangle]
pub unsafe extern "C" fn hr_grammar_free(grammar: *mut Grammar) {
    free(grammar);
}

#[no_mangle]
pub unsafe extern "C" fn hr_grammar_mask(grammar: *mut Grammar, bits: *mut u32, num_words: usize, error: *mut HrError) {
    guarded(error, (), || {
        let bits = if num_words == 0 { &mut [] } else { std::slice::from_raw_parts_mut(bits, num_words) };
        (*grammar).mask(bits)
    });
}

#[no_mangle]
pub unsafe extern "C" fn hr_grammar_accept(grammar: *mut Grammar, token: u32, error: *mut HrError) -> bool {
    guarded(error, false, || (*grammar).accept(token))
}

#[no_mangle]
pub unsafe extern "C" fn hr_grammar_accept_text(grammar: *mut Grammar, text: HrSlice, error: *mut HrError) -> bool {
    guarded(error, false, || (*grammar).accept_text(text.bytes()))
}

#[no_mangle]
pub unsafe extern "C" fn hr_grammar_may_end(grammar: *mut Grammar, error: *mut HrError) -> bool {
    guarded(error, false, || (*grammar).may_end())
}

#[no_mangle]
pub unsafe extern "C" fn hr_grammar_is_finished(grammar: *const Grammar) -> bool {
    (*grammar).is_finished()
}
