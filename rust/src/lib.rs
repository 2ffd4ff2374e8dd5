//! The Rust part of Headrace's text room: tokenizers, chat templates and grammars behind a C interface (src/text/rust_ffi.h).

mod error;
mod ffi;
mod ffi_grammar;
mod grammar;
mod template;
mod tokenizer;
