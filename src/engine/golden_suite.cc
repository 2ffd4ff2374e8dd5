#include "engine/golden_suite.h"

#include "base/cat.h"
#include "base/error.h"
#include "engine/golden_model.h"
#include "engine/golden_quant_folder.h"
#include "engine/golden_texts.h"
#include "text/golden_text.h"

namespace headrace {
namespace {

GoldenOutcome outcome_of_text(const std::string& folder, const GoldenText& text) {
  GoldenOutcome outcome{.name = cat(folder, "/", text.name)};
  outcome.matches = cat(text.num_cases - text.num_failures, "/", text.num_cases, " cases");
  if (!text.not_tried.empty()) {
    outcome.verdict = Verdict::kNotTried;
    outcome.reason = text.not_tried;
  } else if (!text.passed()) {
    outcome.verdict = Verdict::kFailed;
    outcome.reason = text.first_failure;
  }
  return outcome;
}

}  // namespace

GoldenSuite::GoldenSuite(std::string model, std::vector<GoldenSetup> setups, Report report)
    : model_(std::move(model)), setups_(std::move(setups)), report_(std::move(report)) {}

void GoldenSuite::report(GoldenOutcome outcome) {
  ++counts_[static_cast<size_t>(outcome.verdict)];
  report_(outcome);
}

void GoldenSuite::run_setups(const GoldenItem& item) {
  const bool is_texts = item.kind == GoldenKind::kTexts;
  const ModelFiles files = open_model(item.kind == GoldenKind::kModel ? item.path : model_);
  (void)make_arch_spec(files);  // what no setup can run is said once
  GoldenModel model;
  GoldenTexts texts;
  if (is_texts) {
    texts = load_golden_texts(item.safetensors, item.json);
  } else {
    model = load_golden_model(item.safetensors, item.json);
  }
  struct First {
    uint64_t hash;
    std::string setup;
  };
  std::map<std::pair<Numerics, std::optional<DType>>, First> first_of;
  for (const GoldenSetup& setup : setups_) {
    GoldenOutcome outcome;
    try {
      outcome = is_texts ? run_golden_texts(item.name, texts, files, setup)
                         : run_golden_model(item.name, model, files, setup);
    } catch (const std::exception& error) {
      outcome = outcome_of_error(item.name, setup_text(setup), error);
    }
    if (outcome.logits_hash) {
      const auto [first, is_new] =
          first_of.try_emplace({setup.numerics, setup.kv_dtype}, First{*outcome.logits_hash, outcome.setup});
      if (!is_new && first->second.hash != *outcome.logits_hash && outcome.verdict == Verdict::kOk) {
        outcome.verdict = Verdict::kFailed;
        outcome.reason = cat("logits differ in their bits from those of ", first->second.setup);
      }
    }
    report(std::move(outcome));
  }
}

void GoldenSuite::run(const GoldenItem& item) {
  try {
    switch (item.kind) {
      case GoldenKind::kModel:
        run_setups(item);
        break;
      case GoldenKind::kOtherModel:
      case GoldenKind::kTexts:
        if (model_.empty()) {
          throw Error(ErrorCode::kNotFound, "a golden without its model: name the model before --golden");
        }
        run_setups(item);
        break;
      case GoldenKind::kQuant:
        for (GoldenOutcome& outcome : run_golden_quant(item.path)) report(std::move(outcome));
        break;
      case GoldenKind::kTokenizers:
        for (const GoldenText& text : run_golden_tokenizers(item.path)) report(outcome_of_text(item.name, text));
        break;
      case GoldenKind::kTokenizerJson:
        for (const GoldenText& text : run_golden_tokenizer_json(item.path)) report(outcome_of_text(item.name, text));
        break;
      case GoldenKind::kTemplates:
        for (const GoldenText& text : run_golden_templates(item.path)) report(outcome_of_text(item.name, text));
        break;
      case GoldenKind::kNothing:
        throw Error(ErrorCode::kNotFound, item.problem);
    }
  } catch (const std::exception& error) {
    report(outcome_of_error(item.name, {}, error));
  }
}

}  // namespace headrace
