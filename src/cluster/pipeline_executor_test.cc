// The same tokens over a pipeline of stages, however the model is cut, as in one process.
#include "cluster/pipeline_executor.h"

#include <gtest/gtest.h>

#include <array>

#include "backend/cpu/cpu_backend.h"
#include "base/test_walk.h"
#include "cluster/activation_codec.h"
#include "cluster/stage_service.h"
#include "cluster/test_links.h"
#include "engine/test_answers.h"

namespace headrace::cluster {
namespace {

struct Shape {
  std::vector<int32_t> sublayers;  ///< of the head and each worker
  bool output_on_head = true;
  Isa worker_isa = best_isa();
};

/// A worker's machine within this process.
struct TestWorker {
  TestWorker(Isa isa) : pool(1), backend(make_cpu_backend(pool, isa)) {}
  ComputePool pool;
  std::unique_ptr<Backend> backend;
  SingleRank comm;
  std::unique_ptr<StageService> service;
};

/// Workers outlive the engine whose stages they have.
StageAssembly assemble(const StageSite& site, const Shape& shape, std::vector<std::unique_ptr<TestWorker>>& workers) {
  const CachePlan cache = size_cache(site);
  const auto stage = [&](Backend& backend, ComputePool& pool, Comm& comm, const StageUnits& units, bool gathers) {
    const StageConfig config{.kv_dtype = site.kv_dtype,
                             .group_blocks = cache.group_blocks,
                             .max_tokens = site.config.max_step_tokens,
                             .max_seq_len = cache.max_model_len,
                             .gather_outputs = gathers};
    StageWeights weights(backend, pool, site.files, site.spec, site.config.numerics, units, {});
    return std::make_unique<Stage>(backend, site.spec, std::move(weights), config, comm);
  };
  int32_t first = shape.sublayers[0];
  HeadStages head{.first = stage(site.backend, site.pool, site.comm, {.embedding = true, .end_sublayer = first}, false),
                  .output = nullptr};
  const int32_t end = kSublayers * site.spec.num_layers();
  if (shape.output_on_head) {
    head.output =
        stage(site.backend, site.pool, site.comm, {.first_sublayer = end, .end_sublayer = end, .output = true}, false);
  }
  std::vector<WorkerLink> links;
  LinkPair between = connected_pair();
  std::unique_ptr<Link> activations = std::move(between.near);
  for (size_t i = 1; i < shape.sublayers.size(); ++i) {
    const bool last = i + 1 == shape.sublayers.size();
    workers.push_back(std::make_unique<TestWorker>(shape.worker_isa));
    TestWorker& worker = *workers.back();
    const StageUnits units{
        .first_sublayer = first, .end_sublayer = first + shape.sublayers[i], .output = last && !shape.output_on_head};
    first = units.end_sublayer;
    LinkPair plans = connected_pair();
    StageLinks ends{.head = std::move(plans.far), .upstream = std::move(between.far), .downstream = nullptr};
    if (!last) {
      between = connected_pair();
      ends.downstream = std::move(between.near);
    }
    worker.service = std::make_unique<StageService>(
        StageService::Config{.hidden = site.spec.hidden},
        stage(*worker.backend, worker.pool, worker.comm, units, last && shape.output_on_head), std::move(ends),
        [](const Error&) {});
    links.push_back({.name = cat("worker ", i), .plans = std::move(plans.near)});
  }
  StageAssembly assembly{.executor = nullptr,
                         .cache = cache,
                         .num_stages = shape.sublayers.size(),
                         .steps_in_flight = site.config.steps_in_flight};
  assembly.executor = std::make_unique<PipelineExecutor>(PipelineExecutor::Config{.hidden = site.spec.hidden},
                                                         std::move(head), std::move(links), std::move(activations));
  return assembly;
}

EngineConfig config_of(int32_t steps_in_flight) {
  EngineConfig config{.isa = best_isa(),
                      .max_model_len = 96,
                      .max_step_tokens = 24,
                      .max_chunk_tokens = 7,
                      .steps_in_flight = steps_in_flight};
  config.serving = ServingConfig{.kv_cache_bytes = 256 << 10, .prefix_caching = true};
  return config;
}

std::vector<std::vector<TokenId>> answers(Engine& engine) { return greedy_answers(engine, 7, 10).tokens; }

std::vector<std::vector<TokenId>> answers_over(const ModelFiles& files, const Shape& shape, int32_t steps_in_flight) {
  std::vector<std::unique_ptr<TestWorker>> workers;
  EngineConfig config = config_of(steps_in_flight);
  config.assemble = [&](const StageSite& site) { return assemble(site, shape, workers); };
  Engine engine(files, config);
  return answers(engine);
}

/// With whole layers and without, up to a sublayer for each worker.
std::vector<Shape> shapes(int32_t layers) {
  const int32_t all_sublayers = kSublayers * layers;
  std::vector<Shape> all;
  for (const bool output_on_head : {true, false}) {
    all.push_back({.sublayers = {0, all_sublayers}, .output_on_head = output_on_head});
    std::vector<int32_t> even(static_cast<size_t>(layers), kSublayers);
    if (layers > 1) all.push_back({.sublayers = even, .output_on_head = output_on_head});
    even.insert(even.begin(), 0);
    all.push_back({.sublayers = even, .output_on_head = output_on_head});
    all.push_back(
        {.sublayers = std::vector<int32_t>(static_cast<size_t>(all_sublayers), 1), .output_on_head = output_on_head});
  }
  all.push_back({.sublayers = {all_sublayers - 1, 1}, .worker_isa = Isa::kRef});
  return all;
}

TEST(PipelineExecutor, GivesTheTokensOfOneProcess) {
  TestWalk walk("models and cuts of a pipeline", 6);
  for (const char* name : {"llama", "mistral", "qwen2", "qwen3", "llama-tied-bf16"}) {
    const ModelFiles files = open_model(std::string(HR_TEST_DATA) + "/models/" + name);
    Engine alone(files, config_of(1));
    const auto want = answers(alone);
    for (const Shape& shape : shapes(alone.spec().num_layers())) {
      for (const int32_t steps : {0, 1, 3}) {
        if (!walk.takes_next()) continue;
        EXPECT_EQ(answers_over(files, shape, steps), want)
            << name << ", " << shape.sublayers.size() << " stages, output on head " << shape.output_on_head << ", "
            << steps << " steps in flight";
      }
    }
  }
}

/// The start measures steps; what they would send is worth nothing.
TEST(PipelineExecutor, StepsThatAreOnlyMeasuredSendNoRows) {
  const ModelFiles files = open_model(std::string(HR_TEST_DATA) + "/models/llama");
  Engine alone(files, config_of(1));
  const auto want = answers(alone);
  const int32_t layers = alone.spec().num_layers();
  for (const bool output_on_head : {true, false}) {
    std::vector<std::unique_ptr<TestWorker>> workers;
    EngineConfig config = config_of(2);
    config.serving->find_step_tokens = true;
    config.assemble = [&](const StageSite& site) {
      return assemble(site, {.sublayers = {0, 1, kSublayers * layers - 1}, .output_on_head = output_on_head}, workers);
    };
    Engine engine(files, config);
    const auto sent = [&] { return dynamic_cast<PipelineExecutor&>(engine.executor()).figures().stages.front().links; };
    const LinkFigures measured = sent();
    EXPECT_GT(measured.frames_sent, 3);
    EXPECT_EQ(measured.bytes_sent, measured.frames_sent * static_cast<int64_t>(kFrameHeaderBytes));
    EXPECT_EQ(answers(engine), want) << output_on_head;
    EXPECT_GT(sent().bytes_sent, measured.bytes_sent + engine.spec().hidden * static_cast<int64_t>(sizeof(float)));
  }
}

TEST(PipelineExecutor, RowsFromAWorkerThatHasTheOutputEndThePipeline) {
  const ModelFiles files = open_model(std::string(HR_TEST_DATA) + "/models/llama");
  LinkPair plans = connected_pair();
  LinkPair rows = connected_pair();
  EngineConfig config = config_of(1);
  config.assemble = [&](const StageSite& site) {
    std::vector<std::unique_ptr<TestWorker>> unused;
    StageAssembly assembly = assemble(site, {.sublayers = {2, 2}, .output_on_head = false}, unused);
    HeadStages head = dynamic_cast<PipelineExecutor&>(*assembly.executor).stop();
    std::vector<WorkerLink> workers;
    workers.push_back({.name = "worker", .plans = std::move(plans.near)});
    assembly.executor = std::make_unique<PipelineExecutor>(PipelineExecutor::Config{.hidden = site.spec.hidden},
                                                           std::move(head), std::move(workers), std::move(rows.near));
    return assembly;
  };
  Engine engine(files, config);
  ASSERT_TRUE(engine.start({1, 2, 3}, 20, 2).has_value());
  std::optional<StepPlan> plan = engine.scheduler().compose();
  ASSERT_TRUE(plan.has_value());
  const FrameHeader header{.kind = FrameKind::kActivations, .epoch = plan->epoch, .id = raw(plan->step_id)};
  const std::vector<float> row(static_cast<size_t>(engine.spec().hidden * num_outputs(*plan)));
  std::vector<std::byte> payload;
  encode_activations(row, engine.spec().hidden, WireDtype::kBf16, payload);
  engine.executor().submit(std::move(*plan));
  ASSERT_TRUE(plans.far->send(header, std::array{std::span<const std::byte>(payload)}, soon()).ok());
  StepResult result;
  const auto received = engine.executor().receive(result);
  ASSERT_FALSE(received.ok());
  EXPECT_EQ(received.error().code(), ErrorCode::kCorrupt);
}

TEST(PipelineExecutor, AWorkerThatGoesFailsAllStepsThatAreOut) {
  std::vector<std::unique_ptr<TestWorker>> workers;
  const ModelFiles files = open_model(std::string(HR_TEST_DATA) + "/models/llama");
  EngineConfig config = config_of(2);
  config.assemble = [&](const StageSite& site) { return assemble(site, {.sublayers = {2, 2}}, workers); };
  Engine engine(files, config);
  const auto sequence = engine.start({1, 2, 3}, 20, 2);
  ASSERT_TRUE(sequence.has_value());
  ASSERT_NE(engine.step(), nullptr);
  engine.append(*sequence, 4);
  workers.front()->service.reset();
  EXPECT_THROW(static_cast<void>(engine.step()), Error);
  EXPECT_FALSE(engine.executor().can_take());
}

}  // namespace
}  // namespace headrace::cluster
