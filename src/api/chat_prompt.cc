#include "api/chat_prompt.h"

#include <nlohmann/json.hpp>

#include "base/utf8.h"

namespace headrace {
namespace {

using Json = nlohmann::ordered_json;

/// U+FDD0, which Unicode reserves for use inside programs: it stands in no text that people exchange. The rendered
/// conversation is cut at each mark and encoded piece by piece, so that a name with a mark inside is found in no piece.
constexpr std::string_view kMark = "\xEF\xB7\x90";

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string variables_of(const Tokenizer& tokenizer) {
  Json variables = Json::object();
  const auto add = [&](const char* name, std::optional<TokenId> id) {
    if (id) variables[name] = std::string(tokenizer.token_text(*id));
  };
  add("bos_token", tokenizer.bos());
  add("eos_token", tokenizer.eos());
  add("unk_token", tokenizer.unk());
  add("pad_token", tokenizer.pad());
  return dump(variables);
}

}  // namespace

ChatPrompt::ChatPrompt(std::string_view name, std::string_view source, const Tokenizer& tokenizer)
    : tokenizer_(&tokenizer), renderer_(name, source), variables_(variables_of(tokenizer)) {
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.is_special(id) && !tokenizer.token_text(id).empty()) specials_.emplace_back(tokenizer.token_text(id));
  }
}

std::string ChatPrompt::mark_specials(std::string_view text) const {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const size_t n = std::max<size_t>(1, utf8_sequence_length(text.substr(i)));
    const std::string_view rest = text.substr(i);
    bool begins_special = false;
    for (const std::string& special : specials_) begins_special = begins_special || rest.starts_with(special);
    out += rest.substr(0, n);
    if (begins_special) out += kMark;
    i += n;
  }
  return out;
}

std::string ChatPrompt::render_marked(std::span<const Message> messages) const {
  Json list = Json::array();
  for (const Message& message : messages) {
    list.push_back({{"role", mark_specials(message.role)}, {"content", mark_specials(message.content)}});
  }
  return renderer_.render({.messages = dump(list), .tools = {}, .variables = variables_, .now = {}});
}

std::string ChatPrompt::render(std::span<const Message> messages) const {
  std::string text = render_marked(messages);
  for (size_t at = 0; (at = text.find(kMark, at)) != std::string::npos;) text.erase(at, kMark.size());
  return text;
}

std::vector<TokenId> ChatPrompt::encode(std::span<const Message> messages) const {
  const std::string text = render_marked(messages);
  std::vector<TokenId> tokens;
  for (size_t from = 0; from <= text.size();) {
    const size_t end = std::min(text.find(kMark, from), text.size());
    const std::vector<TokenId> piece = tokenizer_->encode(std::string_view(text).substr(from, end - from),
                                                          {.add_special = false, .parse_special = true});
    tokens.insert(tokens.end(), piece.begin(), piece.end());
    from = end + kMark.size();
  }
  return tokens;
}

}  // namespace headrace
