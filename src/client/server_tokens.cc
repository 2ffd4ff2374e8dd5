#include "client/server_tokens.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "client/request_record.h"
#include "client/stream_request.h"
#include "client/words.h"

namespace headrace::client {
namespace {

std::string words_text(int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i) {
    if (i > 0) text += ' ';
    text += kWords[static_cast<size_t>(i) % kWords.size()];
  }
  return text;
}

}  // namespace

ServerTokens::ServerTokens(HttpClient& client, OpenAiTarget target) : client_(client), target_(std::move(target)) {
  constexpr int64_t kFew = 16, kMany = 112;
  constexpr Form kForms[] = {Form::kMessages, Form::kPrompt, Form::kContent};
  for (const Form form : kForms) {
    if (form == Form::kMessages && !is_chat(target_)) continue;
    if (ask(form, words_text(kFew))) {
      form_ = form;
      break;
    }
  }
  const auto measure = [&](int64_t words) {
    return form_ != Form::kNone ? ask(form_, words_text(words)) : count_by_usage(words_text(words));
  };
  const std::optional<int64_t> few = measure(kFew);
  const std::optional<int64_t> many = measure(kMany);
  if (!few || !many || *many <= *few) return;
  by_usage_ = form_ == Form::kNone;
  slope_ = static_cast<double>(*many - *few) / static_cast<double>(kMany - kFew);
  offset_ = static_cast<double>(*few) - slope_ * static_cast<double>(kFew);
}

std::string_view ServerTokens::source() const noexcept {
  if (is_exact()) return "the server's /tokenize";
  return by_usage_ ? "an estimate from the usage of two requests" : "an estimate of one token a word";
}

int64_t ServerTokens::count(std::string_view prompt) {
  if (form_ != Form::kNone) {
    if (const std::optional<int64_t> tokens = ask(form_, prompt)) return *tokens;
  }
  return std::llround(tokens_of_words(static_cast<double>(std::ssize(split_words(prompt)))));
}

std::optional<int64_t> ServerTokens::ask(Form form, std::string_view prompt) {
  nlohmann::ordered_json body;
  if (!target_.model.empty()) body["model"] = target_.model;
  if (form == Form::kMessages) {
    body["messages"] = nlohmann::ordered_json::array({{{"role", "user"}, {"content", prompt}}});
  } else if (form == Form::kPrompt) {
    body["prompt"] = prompt;
  } else {
    body["content"] = prompt;  // llama.cpp, where special tokens are to be asked for
    body["add_special"] = true;
  }
  const HttpAnswer answer = client_.fetch(
      http_request(target_, "/tokenize", body.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)));
  if (!answer.error.empty() || answer.status != 200) return std::nullopt;
  const auto json = nlohmann::json::parse(answer.body, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  if (const auto count = json.find("count"); count != json.end() && count->is_number_integer()) {
    return count->get<int64_t>();
  }
  if (const auto tokens = json.find("tokens"); tokens != json.end() && tokens->is_array() && !tokens->empty()) {
    return static_cast<int64_t>(tokens->size());
  }
  return std::nullopt;
}

std::optional<int64_t> ServerTokens::count_by_usage(std::string_view prompt) {
  RequestRecord record;
  StreamRequest request(record, std::chrono::steady_clock::now());
  client_.start(http_request(target_, request_body(target_, prompt, 1, "")), request);
  while (!request.ended()) (void)client_.turn(std::chrono::steady_clock::now() + std::chrono::seconds(1));
  return record.usage_prompt_tokens;
}

FittedText fit_text(ServerTokens& tokenizer, std::string_view prefix, int64_t tokens,
                    const std::function<std::string_view(int64_t)>& word) {
  constexpr int kAttempts = 8;
  const auto text_of = [&](int64_t words) {
    std::string text(prefix);
    for (int64_t i = 0; i < words; ++i) {
      if (!text.empty()) text += ' ';
      text += word(i);
    }
    return text;
  };
  const int64_t in_prefix = std::ssize(split_words(prefix));
  const int64_t fewest = in_prefix > 0 ? 0 : 1;
  int64_t words =
      std::max<int64_t>(fewest, std::llround(tokenizer.words_of_tokens(static_cast<double>(tokens))) - in_prefix);
  std::map<int64_t, int64_t> counted;  // words, tokens
  FittedText best;
  for (int attempt = 0; attempt < kAttempts && !counted.contains(words); ++attempt) {
    std::string text = text_of(words);
    const int64_t count = tokenizer.count(text);
    counted[words] = count;
    if (attempt == 0 || std::abs(count - tokens) < std::abs(best.tokens - tokens)) best = {std::move(text), count};
    if (count == tokens || !tokenizer.is_exact()) break;
    const double per_word = static_cast<double>(count) / static_cast<double>(std::max<int64_t>(words, 1));
    const int64_t change = std::llround(static_cast<double>(tokens - count) / std::max(per_word, 1.0));
    words = std::max<int64_t>(fewest, words + (change != 0 ? change : (tokens > count ? 1 : -1)));
  }
  return best;
}

}  // namespace headrace::client
