//! The border to C++. Each function catches panics and returns errors as values; src/text/rust_ffi.h declares the same
//! functions and structs, and says who owns what.
#![allow(clippy::missing_safety_doc)] // the contract is in the header

use crate::error::{corrupt, ErrorKind, Result, TextError};
use crate::template::{ChatTemplate, Input};
use crate::tokenizer::gguf::{self, GgufVocab};
use crate::tokenizer::{json, pre_table, Tokenizer};
use std::ffi::c_void;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::slice;
use std::sync::Once;

/// Borrowed bytes; `data` may be null where `len` is 0.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct HrSlice {
    data: *const u8,
    len: usize,
}

impl HrSlice {
    fn of(bytes: &[u8]) -> Self {
        Self { data: bytes.as_ptr(), len: bytes.len() }
    }

    pub(crate) unsafe fn bytes<'a>(self) -> &'a [u8] {
        many(self.data, self.len)
    }

    pub(crate) unsafe fn text<'a>(self, what: &str) -> Result<&'a str> {
        std::str::from_utf8(self.bytes()).map_err(|_| corrupt(format!("{what}: not UTF-8")))
    }
}

pub(crate) unsafe fn many<'a, T>(data: *const T, len: usize) -> &'a [T] {
    if len == 0 {
        &[]
    } else {
        slice::from_raw_parts(data, len)
    }
}

/// Owned bytes, freed by `hr_buffer_free`.
#[repr(C)]
pub struct HrBuffer {
    data: *mut u8,
    len: usize,
}

impl From<String> for HrBuffer {
    fn from(text: String) -> Self {
        let bytes = Box::leak(text.into_bytes().into_boxed_slice());
        Self { data: bytes.as_mut_ptr(), len: bytes.len() }
    }
}

/// Owned ids, freed by `hr_ids_free`.
#[repr(C)]
pub struct HrIds {
    data: *mut u32,
    len: usize,
}

/// Kind 0: no error, and no message to free.
#[repr(C)]
pub struct HrError {
    kind: i32,
    message: HrBuffer,
}

#[no_mangle]
pub unsafe extern "C" fn hr_buffer_free(buffer: HrBuffer) {
    if !buffer.data.is_null() {
        free(std::ptr::slice_from_raw_parts_mut(buffer.data, buffer.len));
    }
}

#[no_mangle]
pub unsafe extern "C" fn hr_ids_free(ids: HrIds) {
    if !ids.data.is_null() {
        free(std::ptr::slice_from_raw_parts_mut(ids.data, ids.len));
    }
}

/// Frees what came from `Box::into_raw`; null is nothing.
pub(crate) unsafe fn free<T: ?Sized>(owned: *mut T) {
    if !owned.is_null() {
        let _ = catch_unwind(AssertUnwindSafe(|| drop(Box::from_raw(owned))));
    }
}

/// Runs `body`; an error or a panic goes to `error` and the result is `failed`.
pub(crate) unsafe fn guarded<T>(error: *mut HrError, failed: T, body: impl FnOnce() -> Result<T>) -> T {
    static QUIET: Once = Once::new();
    // A caught panic is an error message, not a trace on the terminal.
    QUIET.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    let outcome = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()));
        let message = format!("internal error in the text library: {}", text.unwrap_or_default());
        Err(TextError { kind: ErrorKind::Internal, message })
    });
    outcome.unwrap_or_else(|e| {
        *error = HrError { kind: e.kind as i32, message: e.message.into() };
        failed
    })
}

#[no_mangle]
pub unsafe extern "C" fn hr_tokenizer_from_json(json: HrSlice, config: HrSlice, error: *mut HrError) -> *mut Tokenizer {
    guarded(error, std::ptr::null_mut(), || Ok(Box::into_raw(Box::new(json::load(json.bytes(), config.bytes())?))))
}

/// -1 for what the file does not say.
#[repr(C)]
pub struct HrGgufVocab {
    model: HrSlice,
    pre: HrSlice,
    model_name: HrSlice,
    tokens: *const HrSlice,
    num_tokens: usize,
    scores: *const f32,
    num_scores: usize,
    types: *const i32,
    num_types: usize,
    merges: *const HrSlice,
    num_merges: usize,
    bos: i32,
    eos: i32,
    eot: i32,
    eom: i32,
    unk: i32,
    pad: i32,
    add_bos: i32,
    add_eos: i32,
    add_space_prefix: i32,
}

#[no_mangle]
pub unsafe extern "C" fn hr_tokenizer_from_gguf(vocab: *const HrGgufVocab, error: *mut HrError) -> *mut Tokenizer {
    guarded(error, std::ptr::null_mut(), || {
        let v = &*vocab;
        let id = |id: i32| u32::try_from(id).ok();
        let flag = |flag: i32| (flag >= 0).then_some(flag != 0);
        let merges = many(v.merges, v.num_merges).iter().map(|m| m.text("tokenizer.ggml.merges"));
        let vocab = GgufVocab {
            model: v.model.text("tokenizer.ggml.model")?,
            pre: v.pre.text("tokenizer.ggml.pre")?,
            model_name: v.model_name.text("general.name").unwrap_or(""),
            tokens: many(v.tokens, v.num_tokens).iter().map(|t| String::from_utf8_lossy(t.bytes())).collect(),
            scores: many(v.scores, v.num_scores),
            types: many(v.types, v.num_types),
            merges: merges.collect::<Result<_>>()?,
            bos: id(v.bos),
            eos: id(v.eos),
            eot: id(v.eot),
            eom: id(v.eom),
            unk: id(v.unk),
            pad: id(v.pad),
            add_bos: flag(v.add_bos),
            add_eos: flag(v.add_eos),
            add_space_prefix: flag(v.add_space_prefix),
        };
        Ok(Box::into_raw(Box::new(gguf::load(vocab)?)))
    })
}

#[no_mangle]
pub unsafe extern "C" fn hr_tokenizer_free(tokenizer: *mut Tokenizer) {
    free(tokenizer);
}

#[no_mangle]
pub unsafe extern "C" fn hr_tokenizer_encode(
    tokenizer: *const Tokenizer,
    text: HrSlice,
    add_special: bool,
    parse_special: bool,
    error: *mut HrError,
) -> HrIds {
    guarded(error, HrIds { data: std::ptr::null_mut(), len: 0 }, || {
        let ids = (*tokenizer).encode(text.bytes(), add_special, parse_special)?;
        let ids = Box::leak(ids.into_boxed_slice());
        Ok(HrIds { data: ids.as_mut_ptr(), len: ids.len() })
    })
}

/// The id of a vocabulary entry, -1 where there is none.
#[no_mangle]
pub unsafe extern "C" fn hr_tokenizer_id_of(tokenizer: *const Tokenizer, piece: HrSlice) -> i64 {
    let found = catch_unwind(AssertUnwindSafe(|| {
        std::str::from_utf8(piece.bytes()).ok().and_then(|piece| (*tokenizer).id_of(piece))
    }));
    found.ok().flatten().map_or(-1, i64::from)
}

/// Views that live as long as the tokenizer.
#[repr(C)]
pub struct HrTokenizerInfo {
    kind: HrSlice,
    pre: HrSlice,
    num_ids: usize,
    pieces: *const u8,
    piece_ends: *const u32,
    texts: *const u8,
    text_ends: *const u32,
    flags: *const u8,
    bos: i64,
    eos: i64,
    unk: i64,
    pad: i64,
    add_bos: bool,
    add_eos: bool,
    strip_first_space: bool,
}

#[no_mangle]
pub unsafe extern "C" fn hr_tokenizer_info(tokenizer: *const Tokenizer) -> HrTokenizerInfo {
    let (table, info) = (&(*tokenizer).table, &(*tokenizer).info);
    let id = |id: Option<u32>| id.map_or(-1, i64::from);
    HrTokenizerInfo {
        kind: HrSlice::of(info.kind.as_bytes()),
        pre: HrSlice::of(info.pre.as_bytes()),
        num_ids: table.flags.len(),
        pieces: table.pieces.bytes.as_ptr(),
        piece_ends: table.pieces.ends.as_ptr(),
        texts: table.texts.bytes.as_ptr(),
        text_ends: table.texts.ends.as_ptr(),
        flags: table.flags.as_ptr(),
        bos: id(info.bos),
        eos: id(info.eos),
        unk: id(info.unk),
        pad: id(info.pad),
        add_bos: info.add_bos,
        add_eos: info.add_eos,
        strip_first_space: info.strip_first_space,
    }
}

/// The names of all known GGUF pre-tokenizers, one a line.
#[no_mangle]
pub extern "C" fn hr_pre_tokenizer_names() -> HrBuffer {
    let names = catch_unwind(|| {
        let names: Vec<&str> = pre_table::TABLE.iter().flat_map(|pre| pre.names).copied().collect();
        names.join("\n")
    });
    names.unwrap_or_default().into()
}

#[no_mangle]
pub unsafe extern "C" fn hr_template_new(name: HrSlice, source: HrSlice, error: *mut HrError) -> *mut ChatTemplate {
    guarded(error, std::ptr::null_mut(), || {
        let name = String::from_utf8_lossy(name.bytes());
        let source = std::str::from_utf8(source.bytes()).map_err(|e| TextError {
            kind: ErrorKind::TemplateSyntax,
            message: format!("{name}: byte {} is not UTF-8", e.valid_up_to()),
        })?;
        Ok(Box::into_raw(Box::new(ChatTemplate::new(&name, source)?)))
    })
}

#[no_mangle]
pub unsafe extern "C" fn hr_template_free(template: *mut ChatTemplate) {
    free(template);
}

/// Writes the time by `format` into `out`; the number of bytes, 0 where it fails or does not fit.
pub type HrFormatTime = extern "C" fn(context: *const c_void, format: HrSlice, out: *mut u8, capacity: usize) -> usize;

#[repr(C)]
pub struct HrTemplateInput {
    messages: HrSlice,
    tools: HrSlice,
    variables: HrSlice,
    add_generation_prompt: bool,
    format_time: HrFormatTime,
    time_context: *const c_void,
}

#[no_mangle]
pub unsafe extern "C" fn hr_template_render(
    template: *const ChatTemplate,
    input: *const HrTemplateInput,
    error: *mut HrError,
) -> HrBuffer {
    guarded(error, HrBuffer { data: std::ptr::null_mut(), len: 0 }, || {
        let input = &*input;
        let (format_time, context) = (input.format_time, input.time_context as usize);
        let format_time = move |format: &str| {
            let mut out = [0u8; 256];
            let len =
                format_time(context as *const c_void, HrSlice::of(format.as_bytes()), out.as_mut_ptr(), out.len());
            let text = String::from_utf8_lossy(out.get(..len)?).into_owned();
            (len > 0 || format.is_empty()).then_some(text)
        };
        let rendered = (*template).render(Input {
            messages: input.messages.text("messages")?,
            tools: input.tools.text("tools")?,
            variables: input.variables.text("variables")?,
            add_generation_prompt: input.add_generation_prompt,
            format_time: Box::new(format_time),
        })?;
        Ok(rendered.into())
    })
}
