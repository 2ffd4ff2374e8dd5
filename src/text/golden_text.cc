#include "text/golden_text.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/cat.h"
#include "base/error.h"
#include "files/gguf.h"
#include "files/json_file.h"
#include "text/chat_renderer.h"
#include "text/detokenizer.h"
#include "text/gguf_vocab.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// Files of `folder` that end in `suffix`, sorted; empty where it cannot be read.
std::vector<std::string> files_ending(const std::string& folder, std::string_view suffix) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().string().ends_with(suffix)) paths.push_back(it->path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string name_of(const std::string& path) { return fs::path(path).filename().string(); }

GoldenText not_tried(const std::string& path, std::string reason) {
  GoldenText result{.name = name_of(path)};
  result.not_tried = std::move(reason);
  return result;
}

/// Runs `body` over a golden file: what it throws before the first case means that it could not be tried.
GoldenText tried(const std::string& path, const std::function<void(GoldenText&)>& body) {
  GoldenText result{.name = name_of(path)};
  try {
    body(result);
    if (result.num_cases == 0) result.not_tried = "it holds no cases";
  } catch (const std::exception& error) {
    result.not_tried = printable(error.what(), 400);
  }
  return result;
}

void record(GoldenText& result, const std::string& failure) {
  ++result.num_cases;
  if (failure.empty()) return;
  if (result.num_failures++ == 0) result.first_failure = failure;
}

std::string show(const std::vector<TokenId>& ids) {
  std::string text;
  for (const TokenId id : ids) text += cat(text.empty() ? "" : " ", id);
  return text.size() <= 300 ? text : text.substr(0, 300) + "...";
}

/// The place where two texts part, for a message.
std::string difference(std::string_view got, std::string_view want) {
  const auto [g, w] = std::mismatch(got.begin(), got.end(), want.begin(), want.end());
  const auto at = static_cast<size_t>(g - got.begin());
  const size_t from = at - std::min<size_t>(at, 20);
  const auto around = [&](std::string_view text) { return printable(text.substr(std::min(from, text.size()), 60)); };
  return cat("at byte ", at, ": \"", around(got), "\", expected \"", around(want), "\"");
}

/// Pieces between `separator`; what follows the last one is not a piece.
std::vector<std::string_view> split(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> pieces;
  for (size_t at = text.find(separator); at != std::string_view::npos; at = text.find(separator)) {
    pieces.push_back(text.substr(0, at));
    text.remove_prefix(at + separator.size());
  }
  return pieces;
}

std::vector<TokenId> parse_ids(std::string_view line) {
  std::istringstream words{std::string(line)};
  std::vector<TokenId> ids;
  for (TokenId id = 0; words >> id;) ids.push_back(id);
  if (!words.eof()) throw Error(ErrorCode::kCorrupt, cat("\"", printable(line, 60), "\" is not a list of token ids"));
  return ids;
}

std::string stream_decode(const Tokenizer& tokenizer, const std::vector<TokenId>& ids, bool skip_special) {
  StreamDetokenizer stream(tokenizer, {.skip_special = skip_special});
  std::string text;
  for (const TokenId id : ids) text += stream.push(id);
  return text + stream.finish();
}

/// Decoding the ids of a text gives the text back, in one go and as a stream; empty if so.
std::string check_decoding(const Tokenizer& tokenizer, const std::vector<TokenId>& ids, std::string_view want,
                           bool skip_special) {
  const std::string got = tokenizer.decode(ids, skip_special);
  if (got != want) return cat("decode [", show(ids), "] ", difference(got, want));
  const std::string streamed = stream_decode(tokenizer, ids, skip_special);
  return streamed == got ? "" : cat("streamed decode [", show(ids), "] ", difference(streamed, want));
}

std::string check_encoding(const Tokenizer& tokenizer, std::string_view text, const std::vector<TokenId>& want,
                           EncodeOptions options) {
  const std::vector<TokenId> got = tokenizer.encode(text, options);
  return got == want ? "" : cat("\"", printable(text, 60), "\": ids [", show(got), "], expected [", show(want), "]");
}

GoldenText run_vocabulary(const std::string& inp) {
  const std::string vocab_path = inp.substr(0, inp.size() - 4);
  return tried(vocab_path, [&](GoldenText& result) {
    const std::string texts_file = read_text_file(inp);
    const std::string ids_file = read_text_file(vocab_path + ".out");
    const std::vector<std::string_view> texts = split(texts_file, "\n__ggml_vocab_test__\n");
    const std::vector<std::string_view> lines = split(ids_file, "\n");
    if (texts.size() != lines.size()) {
      throw Error(ErrorCode::kCorrupt, cat(texts.size(), " texts but ", lines.size(), " lines of ids"));
    }
    const GgufFile file = GgufFile::open(vocab_path);
    std::optional<Tokenizer> tokenizer;
    try {
      tokenizer = Tokenizer::from_gguf(vocab_path, vocab_from_gguf(file.metadata()));
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kUnsupported) throw;
      for (size_t i = 0; i < texts.size(); ++i) record(result, error.message());
      return;
    }
    for (size_t i = 0; i < texts.size(); ++i) {
      const std::vector<TokenId> want = parse_ids(lines[i]);
      std::string failure = check_encoding(*tokenizer, texts[i], want, {});
      if (failure.empty()) failure = check_decoding(*tokenizer, want, texts[i], false);
      record(result, failure);
    }
  });
}

std::string text_or(const Json& object, const char* key, std::string fallback) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::move(fallback);
}

std::string dump(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// "2026-01-15 12:30:00" as local time.
std::optional<std::tm> parse_time(const std::string& text) {
  std::tm time{};
  const char* end = strptime(text.c_str(), "%Y-%m-%d %H:%M:%S", &time);
  return end != nullptr && *end == '\0' ? std::optional(time) : std::nullopt;
}

ChatInput input_of(const Json& conversation, std::optional<std::tm> now) {
  ChatInput input{.messages = dump(conversation.at("messages")), .now = now};
  if (conversation.contains("tools")) input.tools = dump(conversation["tools"]);
  if (conversation.contains("variables")) input.variables = dump(conversation["variables"]);
  input.add_generation_prompt = conversation.value("add_generation_prompt", false);
  return input;
}

std::string check_rendering(const ChatRenderer& renderer, const Json& conversation, std::optional<std::tm> now) {
  const Json& expected = conversation.at("expected");
  const std::string label = text_or(conversation, "case", "?");
  constexpr std::string_view kRaised = "TemplateError: ";
  try {
    const std::string got = renderer.render(input_of(conversation, now));
    if (!expected.contains("text")) {
      return cat(label, ": it rendered, expected ", printable(text_or(expected, "error", "an error")));
    }
    const std::string want = expected["text"];
    return got == want ? "" : cat(label, ": ", difference(got, want));
  } catch (const TemplateError& error) {
    const std::string want = text_or(expected, "error", "");
    if (want.empty()) return cat(label, ": ", printable(error.message(), 300));
    if (!want.starts_with(kRaised)) return "";
    const bool same = error.kind() == TemplateError::Kind::kRaised && error.message() == want.substr(kRaised.size());
    return same ? ""
                : cat(label, ": \"", printable(error.message(), 300), "\", expected \"", printable(want, 300), "\"");
  }
}

GoldenText run_template(const std::string& path) {
  return tried(path, [&](GoldenText& result) {
    const Json golden = Json::parse(read_text_file(path));
    const std::string source_name = text_or(golden, "template", fs::path(path).stem().string() + ".jinja");
    if (fs::path(source_name).has_parent_path()) {
      throw Error(ErrorCode::kCorrupt, cat("template: \"", printable(source_name), "\" is not a file name"));
    }
    const std::string source = read_text_file((fs::path(path).parent_path() / source_name).string());
    const std::optional<std::tm> now = parse_time(text_or(golden, "strftime_now", ""));
    std::optional<ChatRenderer> renderer;
    std::string syntax;
    try {
      renderer.emplace(source_name, source);
    } catch (const Error& error) {
      syntax = error.message();
    }
    for (const Json& conversation : golden.at("cases")) {
      record(result, renderer ? check_rendering(*renderer, conversation, now) : syntax);
    }
  });
}

std::vector<GoldenText> run_each(const std::string& folder, std::string_view suffix,
                                 const std::function<GoldenText(const std::string&)>& run) {
  std::vector<GoldenText> results;
  for (const std::string& path : files_ending(folder, suffix)) results.push_back(run(path));
  if (results.empty()) results.push_back(not_tried(folder, cat("the folder holds no file that ends in ", suffix)));
  return results;
}

}  // namespace

std::vector<GoldenText> run_golden_tokenizers(const std::string& folder) {
  return run_each(folder, ".inp", run_vocabulary);
}

std::vector<GoldenText> run_golden_templates(const std::string& folder) {
  return run_each(folder, ".json", run_template);
}

std::vector<GoldenText> run_golden_tokenizer_json(const std::string& folder) {
  std::optional<Tokenizer> tokenizer;
  std::optional<ChatRenderer> renderer;
  Json golden, config;
  try {
    const std::string config_text = read_text_file(folder + "/tokenizer_config.json");
    golden = Json::parse(read_text_file(folder + "/golden.json"));
    config = Json::parse(config_text);
    const std::string path = folder + "/tokenizer.json";
    tokenizer = Tokenizer::from_json(path, read_text_file(path), config_text);
    renderer.emplace("chat_template", text_or(config, "chat_template", ""));
  } catch (const std::exception& error) {
    return {not_tried(folder, printable(error.what(), 400))};
  }
  const auto ids_of = [](const Json& golden_case) { return golden_case.at("ids").get<std::vector<TokenId>>(); };
  return {
      tried("encode",
            [&](GoldenText& result) {
              for (const Json& c : golden.at("encode")) {
                record(result, check_encoding(*tokenizer, c.at("text").get<std::string>(), ids_of(c),
                                              {.add_special = true, .parse_special = true}));
              }
            }),
      tried("decode",
            [&](GoldenText& result) {
              for (const Json& c : golden.at("decode")) {
                record(result, check_decoding(*tokenizer, ids_of(c), c.at("text").get<std::string>(), false));
                record(result,
                       check_decoding(*tokenizer, ids_of(c), c.at("text_without_specials").get<std::string>(), true));
              }
            }),
      tried("chat",
            [&](GoldenText& result) {
              const Json names = {{"bos_token", text_or(config, "bos_token", "")},
                                  {"eos_token", text_or(config, "eos_token", "")}};
              for (Json c : golden.at("chat")) {
                c["variables"] = names;
                c["expected"] = {{"text", c.at("text")}};
                std::string failure = check_rendering(*renderer, c, std::nullopt);
                if (failure.empty()) {
                  failure =
                      check_encoding(*tokenizer, c.at("text").get<std::string>(), ids_of(c), {.parse_special = true});
                }
                record(result, failure);
              }
            }),
  };
}

}  // namespace headrace
