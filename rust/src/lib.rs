//! The Rust part of Headrace's text room: tokenizers and chat templates behind a C interface (src/text/rust_ffi.h).

mod error;
mod ffi;
mod template;
mod tokenizer;
