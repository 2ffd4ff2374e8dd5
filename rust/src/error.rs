//! Errors that cross the border to C++: a code of `ErrorKind` and one line of text.

pub type Result<T> = std::result::Result<T, TextError>;

/// The same numbers as `RustErrorKind` in src/text/rust_ffi.h.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(i32)]
pub enum ErrorKind {
    Corrupt = 1,
    Unsupported = 2,
    TemplateSyntax = 3,
    TemplateRaised = 4,
    TemplateRuntime = 5,
    Internal = 6,
    BadGrammar = 7,
}

#[derive(Debug)]
pub struct TextError {
    pub kind: ErrorKind,
    pub message: String,
}

pub fn corrupt(message: impl Into<String>) -> TextError {
    TextError { kind: ErrorKind::Corrupt, message: message.into() }
}

pub fn unsupported(message: impl Into<String>) -> TextError {
    TextError { kind: ErrorKind::Unsupported, message: message.into() }
}
