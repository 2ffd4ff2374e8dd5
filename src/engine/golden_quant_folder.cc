#include "engine/golden_quant_folder.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/cat.h"
#include "base/error.h"
#include "engine/golden_tensors.h"
#include "files/json_file.h"
#include "quant/golden_quant.h"

namespace headrace {
namespace {

GoldenOutcome run_type(const std::string& folder, const std::string& type) {
  const std::string path = folder + "/" + type + ".safetensors";
  GoldenOutcome outcome{.name = cat("quant/", type)};
  const std::optional<DType> dtype = dtype_from_name(type);
  const BlockFormat* format = dtype ? find_format(*dtype) : nullptr;
  if (format == nullptr) throw LoadError(path, cat("no decoder for ", type), ErrorCode::kUnsupported);
  const SafetensorsModel file = SafetensorsModel::open(path);
  const TensorView* blocks = file.find("blocks");
  if (blocks == nullptr) throw LoadError(path, "blocks: missing tensor");
  const std::vector<float> expected = golden_floats(file, path, "dequantized");
  if (tensor_bytes(*dtype, {static_cast<int64_t>(expected.size())}) != static_cast<int64_t>(blocks->bytes.size())) {
    throw LoadError(path, cat("blocks: ", blocks->bytes.size(), " bytes do not hold ", expected.size(), " values"));
  }
  const DecodeDifference difference = compare_decoded(*format, blocks->bytes, expected);
  outcome.matches =
      cat(static_cast<int64_t>(expected.size()) - difference.mismatches, "/", expected.size(), " values bit-equal");
  if (difference.mismatches > 0) {
    outcome.verdict = Verdict::kFailed;
    outcome.reason =
        fmt::format("first at element {}, largest difference {:g}", difference.first_mismatch, difference.largest);
  }
  return outcome;
}

}  // namespace

std::vector<GoldenOutcome> run_golden_quant(const std::string& folder) {
  const std::string list = folder + "/quant.json";
  const nlohmann::json json = load_json(list);
  if (!json.contains("types") || !json["types"].is_object() || json["types"].empty()) {
    throw LoadError(list, "types: missing, expected an object with the names of block types");
  }
  std::vector<GoldenOutcome> outcomes;
  for (const auto& [type, facts] : json["types"].items()) {
    try {
      outcomes.push_back(run_type(folder, type));
    } catch (const std::exception& error) {
      outcomes.push_back(outcome_of_error(cat("quant/", printable(type)), {}, error));
    }
  }
  return outcomes;
}

}  // namespace headrace
