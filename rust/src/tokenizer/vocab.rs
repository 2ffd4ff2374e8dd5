//! What a token id stands for: tables that C++ reads directly.

/// Bits of `VocabTable::flags`; the same numbers as in src/text/rust_ffi.h.
pub const FLAG_SPECIAL: u8 = 1; // never made from plain text, skipped in decoded text on request
pub const FLAG_END: u8 = 2; // ends a generation

/// Strings one after the other; entry i is `bytes[ends[i - 1]..ends[i]]`.
#[derive(Default)]
pub struct StringTable {
    pub bytes: Vec<u8>,
    pub ends: Vec<u32>,
}

impl StringTable {
    pub fn push(&mut self, entry: &[u8]) {
        self.bytes.extend_from_slice(entry);
        self.ends.push(self.bytes.len() as u32);
    }
}

#[derive(Default)]
pub struct VocabTable {
    /// The token as its vocabulary writes it.
    pub pieces: StringTable,
    /// The bytes of text that it adds.
    pub texts: StringTable,
    pub flags: Vec<u8>,
}

impl VocabTable {
    pub fn push(&mut self, piece: &str, text: &[u8], special: bool) {
        self.pieces.push(piece.as_bytes());
        self.texts.push(text);
        self.flags.push(if special { FLAG_SPECIAL } else { 0 });
    }
}

/// The character that GPT-2's alphabet writes for each byte: printable bytes as they are, the others from U+0100 on.
pub fn byte_alphabet() -> [char; 256] {
    let mut table = ['\0'; 256];
    let mut next = 0x100;
    for byte in 0..=255u8 {
        let printable = matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
        let code = if printable { byte as u32 } else { next };
        next += u32::from(!printable);
        table[byte as usize] = char::from_u32(code).unwrap_or('?');
    }
    table
}

/// The bytes that `piece` writes in GPT-2's alphabet; None where it holds other characters.
pub fn from_byte_alphabet(piece: &str) -> Option<Vec<u8>> {
    let byte_of = |c: char| match c as u32 {
        code @ (0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF) => Some(code as u8),
        code @ 0x100..=0x120 => Some((code - 0x100) as u8), // 00..20
        code @ 0x121..=0x142 => Some((code - 0x121 + 0x7F) as u8), // 7F..A0
        0x143 => Some(0xAD),
        _ => None,
    };
    piece.chars().map(byte_of).collect()
}

/// The byte that a byte token `<0xNN>` stands for.
pub fn byte_token(piece: &str) -> Option<u8> {
    let hex = piece.strip_prefix("<0x")?.strip_suffix('>')?;
    if hex.len() == 2 {
        u8::from_str_radix(hex, 16).ok()
    } else {
        None
    }
}
