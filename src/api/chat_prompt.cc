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

/// Puts an empty text where messages have none. False: there is no such message.
bool fill_absent_contents(Json& messages) {
  bool found = false;
  for (Json& message : messages) {
    if (!message.is_object() || !message.contains("content") || !message["content"].is_null()) continue;
    message["content"] = "";
    found = true;
  }
  return found;
}

}  // namespace

ChatPrompt::ChatPrompt(std::string_view name, std::string_view source, const Tokenizer& tokenizer)
    : tokenizer_(&tokenizer), renderer_(name, source), variables_(variables_of(tokenizer)) {
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.is_special(id) && !tokenizer.token_text(id).empty()) specials_.emplace_back(tokenizer.token_text(id));
  }
  for (const std::string& special : specials_) begins_special_[static_cast<unsigned char>(special[0])] = true;
}

std::string ChatPrompt::mark_specials(std::string_view text) const {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const size_t n = std::max<size_t>(1, utf8_sequence_length(text.substr(i)));
    const std::string_view rest = text.substr(i);
    bool begins_special = false;
    if (begins_special_[static_cast<unsigned char>(rest[0])]) {
      for (const std::string& special : specials_) begins_special = begins_special || rest.starts_with(special);
    }
    out += rest.substr(0, n);
    if (begins_special) out += kMark;
    i += n;
  }
  return out;
}

void ChatPrompt::mark_all(Json& json) const {
  if (json.is_string()) {
    json = mark_specials(json.get_ref<const std::string&>());
  } else if (json.is_structured()) {
    for (Json& item : json) mark_all(item);
  }
}

std::string ChatPrompt::render_marked(const Conversation& conversation) const {
  Json messages = Json::parse(conversation.messages);
  mark_all(messages);
  Json tools = conversation.tools.empty() ? Json() : Json::parse(conversation.tools);
  mark_all(tools);
  Json variables = Json::parse(variables_);
  if (!conversation.variables.empty()) {
    Json asked = Json::parse(conversation.variables);
    mark_all(asked);
    variables.update(asked);
  }
  const auto render = [&] {
    return renderer_.render({.messages = dump(messages),
                             .tools = tools.is_null() ? "" : dump(tools),
                             .variables = dump(variables),
                             .add_generation_prompt = conversation.add_generation_prompt,
                             .now = {}});
  };
  std::string text;
  try {
    text = render();
  } catch (const Error&) {
    // A message with calls of tools may have no content. Some templates ask for that, others join content to text
    // whatever it is, and fail.
    if (!fill_absent_contents(messages)) throw;
    text = render();
  }
  if (conversation.continue_final_message) cut_after_final(text, messages);
  return text;
}

void ChatPrompt::cut_after_final(std::string& text, const Json& messages) const {
  std::string final_content;
  if (!messages.empty() && messages.back().contains("content") && messages.back()["content"].is_string()) {
    final_content = messages.back()["content"].get<std::string>();
  }
  // Templates often trim what they are given.
  const size_t end = final_content.find_last_not_of(" \t\r\n");
  final_content.resize(end == std::string::npos ? 0 : end + 1);
  final_content.erase(0, std::min(final_content.find_first_not_of(" \t\r\n"), final_content.size()));
  const size_t at = text.rfind(final_content);
  if (final_content.empty() || at == std::string::npos) {
    throw Error(ErrorCode::kInvalidArgument,
                "continue_final_message: the chat template does not write the last message "
                "as it is, so that it cannot be continued");
  }
  text.resize(at + final_content.size());
}

std::string ChatPrompt::render(const Conversation& conversation) const {
  std::string text = render_marked(conversation);
  for (size_t at = 0; (at = text.find(kMark, at)) != std::string::npos;) text.erase(at, kMark.size());
  return text;
}

std::vector<TokenId> ChatPrompt::encode(const Conversation& conversation) const {
  const std::string text = render_marked(conversation);
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

std::string messages_json(std::span<const Message> messages) {
  Json list = Json::array();
  for (const Message& message : messages) list.push_back({{"role", message.role}, {"content", message.content}});
  return dump(list);
}

}  // namespace headrace
