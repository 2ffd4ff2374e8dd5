#include "openai/batch_line.h"

namespace headrace::openai {

BatchLine read_batch_line(std::string_view line) {
  const Json json = parse_body(line);
  const Fields fields(json);
  BatchLine read;
  read.custom_id = fields.string("custom_id").value_or("");
  if (read.custom_id.empty()) fields.refuse("custom_id", "a string that is not empty");
  static constexpr std::string_view kMethods[] = {"POST"};
  (void)fields.choice("method", kMethods);
  static constexpr std::string_view kUrls[] = {"/v1/chat/completions", "/v1/completions"};
  const std::optional<std::string> url = fields.choice("url", kUrls);
  if (!url) fields.refuse("url", "/v1/chat/completions or /v1/completions");
  read.url = *url;
  const Json* body = fields.object("body");
  if (body == nullptr) fields.refuse("body", "an object");
  read.body = *body;
  return read;
}

std::string batch_result_line(const std::string& custom_id, const std::string& request_id, const ErrorAnswer& answer) {
  return to_text({{"id", "batch_" + request_id},
                  {"custom_id", custom_id},
                  {"response", {{"status_code", answer.status}, {"request_id", request_id}, {"body", answer.body}}},
                  {"error", nullptr}});
}

BatchResult read_batch_result(std::string_view line) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("response") || !json.contains("custom_id")) return {};
  if (!json["custom_id"].is_string()) return {};
  BatchResult result{.custom_id = json["custom_id"].get<std::string>()};
  const Json& response = json["response"];
  const auto status = response.is_object() ? response.find("status_code") : response.end();
  if (status != response.end() && status->is_number_integer()) {
    result.is_final = *status != 429 && *status < 500;
  }
  return result;
}

}  // namespace headrace::openai
