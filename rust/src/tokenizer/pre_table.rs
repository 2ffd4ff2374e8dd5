//! The pre-tokenizers that a GGUF file names in `tokenizer.ggml.pre`: how text is cut into words before merges apply.
//!
//! Source of names and patterns: `src/llama-vocab.cpp` of github.com/ggml-org/llama.cpp and, where that file
//! approximates them, the `tokenizer.json` of the model the name stands for.

use Rule::{DigitGroups, DigitGroupsAtBoundary, Regex};

/// One cut of the text. Rules apply one after the other, each to the pieces that the previous one left.
pub enum Rule {
    /// Every match becomes a piece, and so does what lies between matches. The endings `\s+(?!\S)`,
    /// `\s+(?!\S)|\s+` and `jais-2`'s cascade are understood by `split.rs`; other look-around is not.
    Regex(&'static str),
    /// Runs of numbers become groups of three counted from their end ("12345": "12", "345").
    DigitGroups,
    /// The same, for runs that end at a word boundary only.
    DigitGroupsAtBoundary,
}

pub struct Pre {
    pub names: &'static [&'static str],
    pub rules: &'static [Rule],
    /// A word that is a token as a whole is taken, whatever the merges make of it.
    pub ignore_merges: bool,
    /// Begin-of-text is put before the text unless the file says otherwise.
    pub add_bos: bool,
    pub alphabet: Alphabet,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Alphabet {
    /// Every byte is written as one printable character (GPT-2).
    Bytes,
    /// Characters as they are; those without a token become byte tokens `<0xNN>`.
    Characters,
    /// The same, with spaces written as U+2581 (SentencePiece).
    CharactersEscapedSpace,
}

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const LLAMA3: &str = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN35: &str = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const JAIS2: &str = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}";
const GPT4O: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const KIMI: &str = r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const YOUTU: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const YOUTU_ASIAN: &str = r"[\x{AC00}-\x{D7A3}\x{3131}-\x{318E}]+|[\x{FF01}\x{2026}\x{201C}\x{201D}\x{2018}\x{2019}\x{2014}\x{FF1A}\x{FF1B}\x{FF0C}\x{3001}-\x{303F}\x{FE30}-\x{FE4F}]+|[\x{3105}-\x{312F}]+|[\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+";
const DEEPSEEK3: &str = r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"##;
const SPARK: &str = r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+"##;
const KANA_AND_HAN: &str = r"[\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+";
/// Characters outside ASCII are written as numbers: an editor that normalises text would change some of the ranges.
/// Letters of alphabets that have capitals.
const DEEPSEEK_LETTERS: &str = concat!(
    r"\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}",
    r"\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}",
    r"\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}",
    r"\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}",
    r"\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}",
    r"\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}",
    r"\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}",
    r"\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}",
    r"\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}",
    r"\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}",
    r"\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E}",
    r"\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}",
    r"\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}",
    r"\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+",
);
const DEEPSEEK_CJK: &str = r"[\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+";
const AFMOE_ASIAN: &str = concat!(
    r"[\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{F900}-\x{FAFF}\x{3040}-\x{309F}\x{30A0}-\x{30FF}",
    r"\x{FF65}-\x{FF9F}\x{2F00}-\x{2FDF}\x{E40}-\x{E7F}\x{E80}-\x{EFF}\x{1780}-\x{17FF}\x{1000}-\x{109F}",
    r"\x{AA60}-\x{AA7F}\x{A9E0}-\x{A9FF}\x{AC00}-\x{D7AF}\x{1100}-\x{11FF}]+",
);
const BLOOM: &str = r" ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{964}\x{6D4}\x{60C})]+";

const PLAIN: Pre = Pre { names: &[], rules: &[], ignore_merges: false, add_bos: false, alphabet: Alphabet::Bytes };

/// All that are known. "default" also stands for a file that names none.
pub const TABLE: &[Pre] = &[
    Pre {
        names: &["default"],
        rules: &[Regex(r"[\p{P}\$\+<=>\^~\|]+"), Regex(GPT2), Regex(r"\p{N}+"), Regex("[0-9][0-9][0-9]")],
        ..PLAIN
    },
    Pre {
        names: &[
            "llama3",
            "llama-v3",
            "llama-bpe",
            "falcon3",
            "falcon-h1",
            "pixtral",
            "midm-2.0",
            "lfm2",
            "jina-v5-nano",
        ],
        rules: &[Regex(LLAMA3)],
        ignore_merges: true,
        add_bos: true,
        ..PLAIN
    },
    Pre { names: &["dbrx", "smaug-bpe", "chatglm-bpe", "glm4"], rules: &[Regex(LLAMA3)], ..PLAIN },
    Pre { names: &["jais-2"], rules: &[Regex(JAIS2)], ..PLAIN },
    Pre {
        names: &["minicpm5"],
        rules: &[
            Regex(r"\p{N}{1,3}"),
            Regex(
                r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
            ),
        ],
        ignore_merges: true,
        ..PLAIN
    },
    Pre {
        names: &["deepseek-llm"],
        rules: &[
            Regex(r"[\r\n]"),
            Regex(DEEPSEEK_LETTERS),
            Regex(r"\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+"),
            Regex(r"\s+$"),
            Regex(DEEPSEEK_CJK),
            Regex(r"\p{N}+"),
        ],
        ..PLAIN
    },
    Pre {
        names: &["deepseek-coder"],
        rules: &[Regex(r"[\r\n]"), Regex(r"\s?\p{L}+"), Regex(r"\s?\p{P}+"), Regex(DEEPSEEK_CJK), Regex(r"\p{N}")],
        ..PLAIN
    },
    Pre {
        names: &["deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"],
        rules: &[Regex(r"\p{N}{1,3}"), Regex(KANA_AND_HAN), Regex(DEEPSEEK3)],
        ..PLAIN
    },
    Pre {
        names: &["spark2_5"],
        rules: &[Regex(r"\p{N}{1,3}"), Regex(KANA_AND_HAN), Regex(SPARK), Regex(r"\p{N}")],
        ..PLAIN
    },
    Pre { names: &["youtu"], rules: &[Regex(YOUTU_ASIAN), Regex(YOUTU)], ignore_merges: true, ..PLAIN },
    Pre {
        names: &["falcon"],
        rules: &[Regex(r"[\p{P}\$\+<=>\^~\|`]+"), Regex(GPT2), Regex("[0-9][0-9][0-9]")],
        ..PLAIN
    },
    Pre {
        names: &["starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b", "mellum2"],
        rules: &[Regex(r"\p{N}"), Regex(GPT2)],
        ..PLAIN
    },
    Pre {
        names: &[
            "gpt-2",
            "phi-2",
            "jina-es",
            "jina-de",
            "gigachat",
            "jina-v2-es",
            "jina-v2-de",
            "a.x-4.0",
            "mellum",
            "modern-bert",
            "jina-v1-en",
            "jina-v2-code",
            "roberta-bpe",
            "mpt",
            "olmo",
            "jais",
            "trillion",
            "granite-docling",
            "exaone4",
        ],
        rules: &[Regex(GPT2)],
        ..PLAIN
    },
    Pre {
        names: &[
            "qwen2",
            "deepseek-r1-qwen",
            "kormo",
            "f2llmv2",
            "stablelm2",
            "hunyuan",
            "solar-open",
            "megrez",
            "grok-2",
        ],
        rules: &[Regex(QWEN2)],
        ..PLAIN
    },
    Pre { names: &["qwen35"], rules: &[Regex(QWEN35)], ..PLAIN },
    Pre {
        names: &["ufakzeka"],
        rules: &[Regex(r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")],
        ..PLAIN
    },
    Pre {
        names: &["seed-coder"],
        rules: &[Regex(
            r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+",
        )],
        ..PLAIN
    },
    Pre { names: &["laguna"], rules: &[Regex(r"[^\n]+|[\n]+"), Regex(QWEN2)], ..PLAIN },
    Pre {
        names: &["bailingmoe", "bailingmoe2", "llada-moe"],
        rules: &[Regex(
            r"'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
        )],
        ..PLAIN
    },
    Pre {
        names: &["exaone-moe"],
        rules: &[Regex(
            r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+",
        )],
        ..PLAIN
    },
    Pre { names: &["poro-chat", "bloom", "gpt3-finnish"], rules: &[Regex(BLOOM)], ..PLAIN },
    Pre { names: &["viking"], rules: &[Regex(BLOOM), Regex(r"\p{N}")], ..PLAIN },
    Pre { names: &["tekken"], rules: &[Regex(TEKKEN)], ignore_merges: true, add_bos: true, ..PLAIN },
    Pre {
        names: &["chameleon"],
        rules: &[
            Regex("<sentinel:[0-9]+>"),
            Regex("(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z"),
            Regex(r"([\t\n]|    |  )"),
            Regex(r"\p{N}"),
            Regex(r"[\p{P}!-/:-@\[-`{-~]"),
            Regex(GPT2),
        ],
        add_bos: true,
        ..PLAIN
    },
    Pre { names: &["gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"], rules: &[Regex(GPT4O)], ..PLAIN },
    Pre { names: &["granite-embed-multi-97m"], rules: &[Regex(GPT4O)], ignore_merges: true, ..PLAIN },
    Pre { names: &["tiny_aya", "cohere2moe"], rules: &[DigitGroupsAtBoundary, Regex(GPT4O)], ..PLAIN },
    Pre { names: &["superbpe"], rules: &[Regex(r"\p{N}+"), DigitGroups], ..PLAIN },
    Pre { names: &["kimi-k2"], rules: &[Regex(KIMI)], ..PLAIN },
    Pre { names: &["afmoe"], rules: &[DigitGroups, Regex(AFMOE_ASIAN), Regex(DEEPSEEK3)], ..PLAIN },
    Pre {
        names: &["gemma4", "granite-embed-multi-311m"],
        rules: &[Regex(r"[^\n]+|[\n]+")],
        ignore_merges: false,
        add_bos: true,
        alphabet: Alphabet::CharactersEscapedSpace,
    },
    Pre {
        names: &["sarvam-moe"],
        rules: &[Regex(r"[^\n]+|[\n]+")],
        alphabet: Alphabet::CharactersEscapedSpace,
        ..PLAIN
    },
    Pre { names: &["whitespace"], rules: &[Regex(r"\S+")], alphabet: Alphabet::Characters, ..PLAIN },
];

/// The row of `name`; an empty name is "default".
pub fn find(name: &str) -> Option<&'static Pre> {
    let name = if name.is_empty() { "default" } else { name };
    TABLE.iter().find(|pre| pre.names.contains(&name))
}
