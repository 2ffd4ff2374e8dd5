#include "cluster/worker_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <future>
#include <nlohmann/json.hpp>
#include <random>

#include "cluster/control_messages.h"
#include "cluster/model_share.h"
#include "cluster/test_links.h"
#include "files/test_folder.h"

namespace headrace::cluster {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const std::string kGguf = std::string(HR_TEST_DATA) + "/gguf/llama-Q8_0.gguf";
const std::string kOther = std::string(HR_TEST_DATA) + "/gguf/qwen2-Q8_0.gguf";
constexpr std::array kQuestions = {"describe", "open",  "manifest", "missing", "received", "ready", "probe",
                                   "measured", "reach", "load",     "prepare", "join",     "begin", "nonsense"};

/// A session, and the head's side of a model.
class WorkerSessionTest : public testing::Test {
 protected:
  WorkerSessionTest()
      : machine_(Isa::kRef, 1, CpuTuning{}), network_(make_tcp_network({})), shared_(kGguf), other_(kOther) {
    setenv("HEADRACE_CACHE", folder_.path().c_str(), 1);
    config_.memory_bytes = 64 << 20;
    begin_session();
  }
  ~WorkerSessionTest() override { unsetenv("HEADRACE_CACHE"); }

  struct Shared {
    explicit Shared(const std::string& path)
        : files(open_model(path)), spec(make_arch_spec(files)), share(files, spec, std::nullopt, {}) {}
    ModelFiles files;
    ArchSpec spec;
    ModelShare share;
  };

  void begin_session() {
    session_.reset();
    hung_up_ = std::make_unique<std::promise<void>>();
    session_ = std::make_unique<WorkerSession>(machine_, config_, *network_, keys_, [this] { hung_up_->set_value(); });
  }

  json ask(const std::string& what, const json& fields = json::object()) {
    return session_->answer(what, fields, [](double) {});
  }
  std::string refusal(const std::string& what, const json& fields = json::object()) {
    try {
      (void)ask(what, fields);
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  }

  static json units(int32_t first, int32_t end, bool output) {
    return to_json(
        StageUnits{.first_sublayer = kSublayers * first, .end_sublayer = kSublayers * end, .output = output});
  }
  static json open_fields(const Shared& shared) {
    return {{"hash", shared.share.hash()}, {"rules", to_json(ComputeRules{.max_step_tokens = 32})}};
  }
  static json prepare_fields(int32_t blocks, int32_t max_seq_len) {
    return {{"stage", to_json(StageRules{.group_blocks = {blocks}, .max_seq_len = max_seq_len})},
            {"wire_dtype", "f32"}};
  }

  /// Sends what is missing, as a head does.
  void send_missing(const Shared& shared, const json& fields) {
    const json ranges = ask("missing", fields).at("ranges");
    if (ranges.empty()) return;
    LinkPair pair = connected_pair();
    session_->take_link("bytes", std::move(pair.far));
    auto sent = std::async(std::launch::async, [&] {
      for (const uint32_t range : ranges) {
        const std::array part{shared.share.bytes(range)};
        EXPECT_TRUE(pair.near->send({.kind = FrameKind::kBytes, .id = range}, part, soon()));
      }
    });
    ask("received");
    sent.wait();
  }
  void open(const Shared& shared) {
    if (ask("open", open_fields(shared)).at("needs_manifest").get<bool>()) {
      ask("manifest", {{"text", manifest_json(shared.share.manifest())}});
    }
    send_missing(shared, json::object());
    ask("ready");
  }
  void load(const Shared& shared, const json& wanted) {
    send_missing(shared, {{"units", wanted}});
    ask("load", {{"units", wanted}});
  }

  TestFolder folder_;
  WorkerConfig config_;
  NodeMachine machine_;
  std::unique_ptr<Network> network_;
  DataKeys keys_;
  Shared shared_, other_;
  std::unique_ptr<std::promise<void>> hung_up_;
  std::unique_ptr<WorkerSession> session_;
};

TEST_F(WorkerSessionTest, AnswersInOrder) {
  open(shared_);
  EXPECT_GT(ask("probe").at("at").size(), 0U);
  load(shared_, units(1, 3, false));
  const json prepared = ask("prepare", prepare_fields(8, 64));
  EXPECT_GT(prepared.at("kv_bytes").get<int64_t>(), 0);
}

TEST_F(WorkerSessionTest, RefusesWhatComesTooSoon) {
  const json layer = {{"units", units(0, 1, false)}};
  EXPECT_THAT(refusal("ready"), HasSubstr("ready comes after open"));
  EXPECT_THAT(refusal("probe"), HasSubstr("probe comes after ready"));
  EXPECT_THAT(refusal("load", layer), HasSubstr("load comes after ready"));
  EXPECT_THAT(refusal("prepare", prepare_fields(8, 64)), HasSubstr("prepare comes after ready"));
  EXPECT_THAT(refusal("begin"), HasSubstr("begin comes after prepare"));
  EXPECT_THAT(refusal("manifest", {{"text", manifest_json(shared_.share.manifest())}}), HasSubstr("another model"));
  open(shared_);
  EXPECT_THAT(refusal("load", layer), HasSubstr("not there yet"));
  EXPECT_THAT(refusal("prepare", prepare_fields(8, 64)), HasSubstr("no weights are loaded"));
  load(shared_, units(0, 1, false));
  // Of another model, opened meanwhile, nothing is there.
  ask("open", open_fields(other_));
  EXPECT_THAT(refusal("load", layer), HasSubstr("load comes after ready"));
  EXPECT_THAT(refusal("prepare", prepare_fields(8, 64)), HasSubstr("prepare comes after ready"));
}

TEST_F(WorkerSessionTest, RefusesPartsThatWereNotAskedFor) {
  ask("open", open_fields(shared_));
  ask("manifest", {{"text", manifest_json(shared_.share.manifest())}});
  ask("missing");
  LinkPair pair = connected_pair();
  session_->take_link("bytes", std::move(pair.far));
  const std::string noise(100, 'x');
  ASSERT_TRUE(pair.near->send({.kind = FrameKind::kBytes, .id = 3}, std::array{bytes_of(noise)}, soon()));
  EXPECT_THAT(refusal("received"), HasSubstr("not asked for"));
  // What was expected of one model is not taken for another.
  ask("missing");
  ask("open", open_fields(other_));
  EXPECT_EQ(ask("received"), json::object());
}

TEST_F(WorkerSessionTest, TakesNoMoreMemoryThanItMay) {
  open(shared_);
  load(shared_, units(0, 4, true));
  EXPECT_THAT(refusal("prepare", prepare_fields(1 << 30, 64)), HasSubstr("this worker may take 67108864"));
  EXPECT_THAT(refusal("prepare", prepare_fields(8, 1 << 30)), HasSubstr("max_seq_len"));
  EXPECT_THAT(refusal("prepare", {{"stage", to_json(StageRules{.group_blocks = {8, 8}, .max_seq_len = 64})},
                                  {"wire_dtype", "f32"}}),
              HasSubstr("group_blocks"));
  EXPECT_THAT(
      refusal("load",
              {{"units", {{"embedding", false}, {"first_sublayer", 0}, {"end_sublayer", 9}, {"output", false}}}}),
      HasSubstr("end_sublayer"));
}

TEST_F(WorkerSessionTest, APlanThatIsNoneEndsThePipelineOnly) {
  open(shared_);
  load(shared_, units(1, 2, false));
  ask("prepare", prepare_fields(8, 64));
  LinkPair heartbeat = connected_pair(), plans = connected_pair(), activations = connected_pair();
  session_->take_link("heartbeat", std::move(heartbeat.far));
  session_->take_link("plans", std::move(plans.far));
  session_->take_link("activations", std::move(activations.far));
  ask("begin");
  const std::string noise(100, 'x');
  ASSERT_TRUE(plans.near->send({.kind = FrameKind::kPlan, .id = 1}, std::array{bytes_of(noise)}, soon()));
  ASSERT_EQ(hung_up_->get_future().wait_until(soon()), std::future_status::ready);
  // Its stage is there for the next head.
  begin_session();
  open(shared_);
  load(shared_, units(1, 2, false));
  EXPECT_GT(ask("prepare", prepare_fields(8, 64)).at("kv_bytes").get<int64_t>(), 0);
}

/// Questions in any order, with fields of other questions, changed or left out.
TEST_F(WorkerSessionTest, MisuseIsRefusedAndLeavesItUsable) {
  std::minstd_rand random(7);
  const auto below = [&](size_t n) { return random() % n; };
  json good = open_fields(shared_);
  good.update({{"text", manifest_json(shared_.share.manifest())},
               {"units", units(0, 2, false)},
               {"address", "127.0.0.1:1"},
               {"key", "00"}});
  good.update(prepare_fields(8, 64));
  const std::array<json, 8> odd = {json(nullptr),
                                   json(-1),
                                   json(1e300),
                                   json("x"),
                                   json::array(),
                                   json::object(),
                                   json(std::string(300, 'z')),
                                   json::array({json::array({1})})};
  int refused = 0;
  for (int i = 0; i < 200; ++i) {
    if (below(40) == 0) open(below(2) == 0 ? shared_ : other_);
    json fields = good;
    if (below(2) == 0) {
      json* at = &fields;
      do {
        at = &std::next(at->begin(), static_cast<std::ptrdiff_t>(below(at->size()))).value();
      } while (at->is_object() && !at->empty() && below(2) == 0);
      *at = odd[below(odd.size())];
    }
    const std::string what = kQuestions[below(kQuestions.size())];
    // Where all is right these wait for connections.
    if ((what == "begin" && refusal("load", fields).empty()) || what == "received") continue;
    refused += refusal(what, fields).empty() ? 0 : 1;
  }
  EXPECT_GT(refused, 30);
  open(shared_);
  load(shared_, units(1, 3, true));
  EXPECT_GT(ask("prepare", prepare_fields(8, 64)).at("kv_bytes").get<int64_t>(), 0);
}

}  // namespace
}  // namespace headrace::cluster
