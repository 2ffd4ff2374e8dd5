#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headrace {

/// The outcome of one golden file.
struct GoldenText {
  std::string name = {};
  int64_t num_cases = 0;
  int64_t num_failures = 0;
  std::string first_failure = {};  ///< one line; empty where all passed
  /// Why nothing could be tried (a file missing or unreadable, a kind of vocabulary that is not supported); empty where
  /// it could. A supported vocabulary or a template that does not load is a failure, not this.
  std::string not_tried = {};

  [[nodiscard]] bool passed() const noexcept { return num_failures == 0 && not_tried.empty(); }
};

/// Encodes the texts of each `NAME.inp` in `folder` with the vocabulary NAME (a .gguf) and compares with the ids of
/// `NAME.out`; decoding must give back the text. Formats: tests/data/tokenizers/README.md. Sorted by name; one entry
/// that was not tried where the folder holds no such file. Never throws for what it finds.
[[nodiscard]] std::vector<GoldenText> run_golden_tokenizers(const std::string& folder);

/// Renders the cases of each `NAME.json` in `folder` with the template it names (NAME.jinja). Formats:
/// tests/data/templates/README.md.
[[nodiscard]] std::vector<GoldenText> run_golden_templates(const std::string& folder);

/// Encodings, decodings and chats in `golden.json` of a folder with tokenizer.json and tokenizer_config.json; one entry
/// for each of the three.
[[nodiscard]] std::vector<GoldenText> run_golden_tokenizer_json(const std::string& folder);

}  // namespace headrace
