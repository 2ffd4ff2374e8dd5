#include "cluster/part_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "arch/registry.h"
#include "base/byte_reader.h"
#include "base/property_test.h"
#include "cluster/model_share.h"
#include "cluster/part_disk.h"
#include "cluster/part_journal.h"
#include "files/test_folder.h"

namespace headrace::cluster {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

const std::string kLlama = std::string(HR_TEST_DATA) + "/models/llama";
const std::string kTied = std::string(HR_TEST_DATA) + "/models/llama-tied-bf16";
const std::string kGguf = std::string(HR_TEST_DATA) + "/gguf/llama-Q8_0.gguf";

/// A model with its spec and share.
struct Shared {
  explicit Shared(const std::string& path, const std::optional<fs::path>& cache = std::nullopt)
      : files(open_model(path)), spec(make_arch_spec(files)), share(files, spec, cache, {}) {}
  ModelFiles files;
  ArchSpec spec;
  ModelShare share;
};

void send(PartStore& store, const ModelShare& share, const std::vector<uint32_t>& ranges) {
  for (const uint32_t range : ranges) {
    const auto written = store.write(range, share.bytes(range));
    ASSERT_TRUE(written) << written.error().message();
  }
}

std::string path_of(PartStore& store, const StageUnits& units) {
  const Result<std::string> path = store.model_path(units);
  EXPECT_TRUE(path) << (path ? "" : path.error().message());
  return path ? path.value() : "";
}

/// What opens from the store has the tensors of the units byte for byte.
void expect_same(const Shared& shared, PartStore& store, const StageUnits& units) {
  const ModelFiles parts = open_model(path_of(store, units));
  const ArchSpec spec = make_arch_spec(parts);
  ASSERT_EQ(spec.tensors.size(), shared.spec.tensors.size());
  EXPECT_EQ(spec.ropes, shared.spec.ropes);
  for (const TensorSpec& tensor : spec.tensors) {
    if (!units.holds(spec, tensor)) continue;
    EXPECT_TRUE(std::ranges::equal(find_spec_tensor(parts, tensor).bytes, find_spec_tensor(shared.files, tensor).bytes))
        << tensor.name;
  }
}

TEST(PartStore, OpensAsTheModelForAnyCut) {
  for (const std::string& path : {kLlama, kTied, kGguf}) {
    const Shared shared(path);
    for (int32_t stages = 1; stages <= shared.spec.num_layers(); ++stages) {
      for (const StageUnits& units : even_cut(shared.spec, stages)) {
        const TestFolder folder;
        PartStore store(folder.path(), shared.share.manifest(), 0);
        EXPECT_FALSE(store.model_path(units));
        send(store, shared.share, store.missing(units));
        expect_same(shared, store, units);
        int64_t needed = 0;
        for (const ManifestRange& range : shared.share.manifest().ranges) {
          if (shared.share.manifest().needs(units, range)) needed += range.bytes;
        }
        if (stages > 1) {
          EXPECT_LT(needed, shared.files.tensor_bytes());
          EXPECT_FALSE(store.complete_for(whole_model(shared.spec)));
          EXPECT_FALSE(store.model_path(whole_model(shared.spec)));
        }
      }
    }
  }
}

/// The llama fixture in shards, every other tensor in the second.
std::string write_shards(const TestFolder& folder) {
  const ModelFiles files = open_model(kLlama);
  nlohmann::json index{{"weight_map", nlohmann::json::object()}};
  for (const size_t shard : {size_t{0}, size_t{1}}) {
    nlohmann::ordered_json header;
    std::string data;
    const std::string name = cat("model-0000", shard + 1, "-of-00002.safetensors");
    for (size_t i = shard; i < files.tensors().size(); i += 2) {
      const NamedTensor& tensor = files.tensors()[i];
      header[tensor.name] = {{"dtype", dtype_name(tensor.view.dtype)},
                             {"shape", tensor.view.shape},
                             {"data_offsets", {data.size(), data.size() + tensor.view.bytes.size()}}};
      data.append(reinterpret_cast<const char*>(tensor.view.bytes.data()), tensor.view.bytes.size());
      index["weight_map"][tensor.name] = name;
    }
    const std::string text = header.dump();
    std::vector<std::byte> bytes;
    append_le(bytes, uint64_t{text.size()});
    const std::string size(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    folder.write(cat("model/", name), size + text + data);
  }
  folder.write("model/model.safetensors.index.json", index.dump());
  fs::copy_file(kLlama + "/config.json", folder.path("model/config.json"));
  return folder.path("model");
}

TEST(PartStore, KeepsShardsAsTheyAre) {
  const TestFolder folder;
  const Shared shared(write_shards(folder));
  EXPECT_EQ(shared.share.manifest().files.size(), 4u);
  for (const StageUnits& units : even_cut(shared.spec, 2)) {
    PartStore store(folder.path("parts"), shared.share.manifest(), 0);
    send(store, shared.share, store.missing(units));
    expect_same(shared, store, units);
  }
}

TEST(PartStore, SecondStartMissesNothing) {
  const Shared shared(kGguf);
  const TestFolder folder;
  const StageUnits units = even_cut(shared.spec, 2)[1];
  EXPECT_FALSE(PartStore::kept_manifest(folder.path(), shared.share.hash()));
  {
    PartStore store(folder.path(), shared.share.manifest(), 0);
    send(store, shared.share, store.missing(units));
    (void)path_of(store, units);
  }
  const auto kept = PartStore::kept_manifest(folder.path(), shared.share.hash());
  ASSERT_TRUE(kept);
  EXPECT_EQ(*kept, shared.share.manifest());
  PartStore again(folder.path(), *kept, 0);
  EXPECT_EQ(again.missing_bytes(units), 0);
  expect_same(shared, again, units);
  EXPECT_FALSE(PartStore::kept_manifest(folder.path(), "../" + shared.share.hash()));
}

TEST(PartStore, WorkersOfOneMachineShareAFolder) {
  const Shared shared(kGguf);
  const TestFolder folder;
  const StageUnits all = whole_model(shared.spec);
  {
    PartStore first(folder.path(), shared.share.manifest(), 0);
    PartStore second(folder.path(), shared.share.manifest(), 0);
    for (const uint32_t range : first.missing(all)) {
      send(range % 2 == 0 ? first : second, shared.share, {range});
      EXPECT_TRUE((range % 3 == 0 ? first : second).flush());
    }
    EXPECT_TRUE(first.flush());
    EXPECT_TRUE(second.flush());
    EXPECT_FALSE(first.complete_for(all));
  }
  PartStore third(folder.path(), shared.share.manifest(), 0);
  expect_same(shared, third, all);
}

TEST(PartStore, RefusesBytesThatAreNotTheModels) {
  const Shared shared(kGguf);
  const TestFolder folder;
  PartStore store(folder.path(), shared.share.manifest(), 0);
  const auto count = static_cast<uint32_t>(shared.share.manifest().ranges.size());
  std::vector<std::byte> bytes(shared.share.bytes(1).begin(), shared.share.bytes(1).end());
  bytes[0] ^= std::byte{1};
  EXPECT_EQ(store.write(1, bytes).error().code(), ErrorCode::kCorrupt);
  EXPECT_EQ(store.write(1, shared.share.bytes(1).first(3)).error().code(), ErrorCode::kCorrupt);
  EXPECT_EQ(store.write(count, shared.share.bytes(1)).error().code(), ErrorCode::kCorrupt);
  EXPECT_EQ(store.missing(whole_model(shared.spec)).size(), count);
}

TEST(PartStore, ForgetsWhatTheDiskHasDamaged) {
  const Shared shared(kGguf);
  const TestFolder folder;
  const StageUnits all = whole_model(shared.spec);
  const fs::path own = fs::path(folder.path()) / shared.share.hash();
  {
    PartStore store(folder.path(), shared.share.manifest(), 0);
    send(store, shared.share, store.missing(all));
    const std::string path = path_of(store, all);
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(shared.share.manifest().ranges[2].offset);
    file.put('\x55').put('\x13').put('\x77');
    file.close();
    const Result<int64_t> forgotten = store.forget_damaged(all);
    ASSERT_TRUE(forgotten);
    EXPECT_EQ(forgotten.value(), 1);
  }
  PartStore again(folder.path(), shared.share.manifest(), 0);
  EXPECT_THAT(again.missing(all), testing::ElementsAre(2u));
  send(again, shared.share, {2});
  expect_same(shared, again, all);
  // A file that lost its end holds nothing that can be relied on.
  fs::resize_file(own / "model" / shared.share.manifest().files[0].name, 100);
  EXPECT_EQ(PartStore(folder.path(), shared.share.manifest(), 0).missing(all).size(),
            shared.share.manifest().ranges.size());
}

TEST(PartStore, LimitTakesFromWhatWasUsedLeastRecently) {
  const Shared first(kGguf), second(kLlama), third(kTied);
  const TestFolder folder;
  const auto fill = [&](const Shared& shared, int64_t limit) {
    PartStore store(folder.path(), shared.share.manifest(), limit);
    for (const uint32_t range : store.missing(whole_model(shared.spec))) {
      if (auto written = store.write(range, shared.share.bytes(range)); !written) return written.error().message();
    }
    const Result<std::string> path = store.model_path(whole_model(shared.spec));
    return path ? std::string() : path.error().message();
  };
  EXPECT_EQ(fill(first, 0), "");
  EXPECT_EQ(fill(second, 0), "");
  // By the clock both may be of the same moment.
  fs::last_write_time(fs::path(folder.path()) / first.share.hash() / "used",
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  const int64_t both = allocated_bytes(folder.path());
  EXPECT_EQ(fill(third, both + 100'000), "");
  EXPECT_FALSE(fs::exists(fs::path(folder.path()) / first.share.hash()));
  EXPECT_TRUE(fs::exists(fs::path(folder.path()) / second.share.hash()));
  EXPECT_LE(allocated_bytes(folder.path()), both + 100'000);
  // One in use stays; then there is nothing to give.
  PartStore used(folder.path(), second.share.manifest(), 0);
  fs::remove_all(fs::path(folder.path()) / third.share.hash());
  EXPECT_THAT(fill(first, allocated_bytes(folder.path()) + 100'000), HasSubstr("above its limit of"));
  EXPECT_TRUE(used.complete_for(whole_model(second.spec)));
}

TEST(PartStore, JournalIsReadWhateverItWasTornTo) {
  std::vector<std::byte> journal;
  for (const uint32_t range : {3u, 5u, 7u, 5u}) {
    const auto record = encode_record(range, range != 5u || journal.size() < 40);
    journal.insert(journal.end(), record.begin(), record.end());
  }
  const auto ones = [](const std::vector<bool>& bits) { return std::ranges::count(bits, true); };
  EXPECT_EQ(ones(read_journal(journal, 10)), 2);  // 5 went again
  EXPECT_EQ(ones(read_journal(journal, 5)), 1);
  for (size_t size = 0; size < journal.size(); ++size) {
    std::vector<std::byte> torn(journal.begin(), journal.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_EQ(ones(read_journal(torn, 10)), static_cast<int64_t>(size / 16));
    // Whoever comes next writes on behind the torn record.
    const auto record = encode_record(9, true);
    torn.insert(torn.end(), record.begin(), record.end());
    EXPECT_TRUE(read_journal(torn, 10)[9]);
  }
}

/// One life of a worker, killed with SIGKILL after that many ranges: what it wrote and did not flush included.
void live_and_die(const fs::path& folder, const ModelShare& share, const std::vector<uint32_t>& ranges, bool flushes) {
  const pid_t child = ::fork();
  if (child == 0) {
    PartStore store(folder, share.manifest(), 0);
    for (const uint32_t range : ranges) {
      if (!store.write(range, share.bytes(range))) ::_exit(1);
      if (flushes && !store.flush()) ::_exit(1);
    }
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
}

TEST(PartStore, AnyCutAnyOrderKilledAnywhereGivesTheSameBytes) {
  const Shared shared(kGguf);
  const ModelManifest& manifest = shared.share.manifest();
  int histories = 0;
  EXPECT_TRUE(holds_for_histories([&] {
    if (histories++ >= 30 && !is_long_tier()) return;  // each life is a process
    const TestFolder folder;
    const auto ends = *rc::gen::pair(rc::gen::inRange(0, 9), rc::gen::inRange(0, 9));
    const StageUnits units{.embedding = *rc::gen::arbitrary<bool>(),
                           .first_sublayer = std::min(ends.first, ends.second),
                           .end_sublayer = std::max(ends.first, ends.second),
                           .output = *rc::gen::arbitrary<bool>()};
    std::mt19937_64 random(*rc::gen::arbitrary<uint64_t>());
    const fs::path journal = fs::path(folder.path()) / shared.share.hash() / "journal";
    for (int life = *rc::gen::inRange(0, 4); life > 0; --life) {
      PartStore before(folder.path(), manifest, 0);
      std::vector<uint32_t> ranges = before.missing(units);
      std::ranges::shuffle(ranges, random);
      ranges.resize(random() % (ranges.size() + 1));
      live_and_die(folder.path(), shared.share, ranges, random() % 2 == 0);
      if (random() % 2 == 0) {  // the power went too
        const auto size = fs::file_size(journal);
        fs::resize_file(journal, size - random() % (size + 1));
      }
    }
    PartStore store(folder.path(), manifest, 0);
    // What the journal says is there.
    const Result<int64_t> damaged = store.forget_damaged(whole_model(shared.spec));
    RC_ASSERT(damaged.ok());
    RC_ASSERT(damaged.value() == 0);
    std::vector<uint32_t> rest = store.missing(units);
    std::ranges::shuffle(rest, random);
    for (const uint32_t range : rest) {
      RC_ASSERT(!store.complete_for(units));
      RC_ASSERT(store.write(range, shared.share.bytes(range)).ok());
    }
    expect_same(shared, store, units);
    RC_ASSERT(!testing::Test::HasFailure());
  }));
}

TEST(ModelShare, KeepsDigestsUntilAFileChanges) {
  const TestFolder folder;
  fs::copy_file(kGguf, folder.path("model.gguf"));
  fs::permissions(folder.path("model.gguf"), fs::perms::owner_all);
  const fs::path cache = folder.path("cache");
  const auto hash = [&](int& digests) {
    const ModelFiles files = open_model(folder.path("model.gguf"));
    digests = 0;
    return ModelShare(files, make_arch_spec(files), cache, [&](double) { ++digests; }).hash();
  };
  int made = 0, again = 0, changed = 0;
  const std::string first = hash(made);
  EXPECT_GT(made, 0);
  EXPECT_EQ(hash(again), first);
  EXPECT_EQ(again, 0);
  std::fstream file(folder.path("model.gguf"), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-1, std::ios::end);
  const int last = file.get();
  file.seekp(-1, std::ios::end);
  file.put(static_cast<char>(last ^ 1));
  file.close();
  fs::last_write_time(folder.path("model.gguf"), fs::file_time_type::clock::now() + std::chrono::seconds(2));
  EXPECT_NE(hash(changed), first);
  EXPECT_EQ(changed, made);
  // A copy elsewhere is the same model; its neighbour is not.
  const Shared original(kGguf);
  const TestFolder other;
  fs::copy_file(kGguf, other.path("llama-Q8_0.gguf"));
  EXPECT_TRUE(local_copy(other.path("llama-Q8_0.gguf"), original.share.hash(), cache, {}));
  const auto refused = local_copy(kLlama, original.share.hash(), cache, {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr(cat("the head has ", original.share.hash())));
  EXPECT_FALSE(local_copy(folder.path("none"), original.share.hash(), cache, {}));
}

TEST(ModelManifest, ReadsBackAndRefusesWhatCannotBe) {
  const Shared shared(kLlama);
  const ModelManifest& manifest = shared.share.manifest();
  EXPECT_EQ(parse_manifest(manifest_json(manifest)), manifest);
  EXPECT_EQ(parse_manifest(manifest_json(manifest)).hash(), shared.share.hash());
  const auto refused = [&](const std::string& pointer, const nlohmann::json& value) {
    nlohmann::json json = nlohmann::json::parse(manifest_json(manifest));
    json[nlohmann::json::json_pointer(pointer)] = value;
    return error_of([&] { (void)parse_manifest(json.dump()); });
  };
  for (const char* name : {"", ".", "..", "../x", "a/b", "/etc/x", "a\\b", "a\nb", "model.safetensors"}) {
    EXPECT_THAT(refused("/files/1/0", name), HasSubstr("file")) << name;
  }
  EXPECT_THAT(refused("/files/1/0", std::string("a\0b", 3)), HasSubstr("file name"));
  EXPECT_THAT(refused("/files/1/0", std::string(300, 'a')), HasSubstr("file name"));
  EXPECT_THAT(refused("/files/0/1", -1), HasSubstr("bytes of a file"));
  EXPECT_THAT(refused("/files/0/1", int64_t{1} << 60), HasSubstr("bytes of a file"));
  EXPECT_THAT(refused("/files/0/1", 10), HasSubstr("which has 10 bytes"));
  EXPECT_THAT(refused("/ranges/0/0", 99), HasSubstr("file of a range"));
  EXPECT_THAT(refused("/ranges/0/1", uint64_t{0xffffffffffffffff}), HasSubstr("offset of a range"));
  EXPECT_THAT(refused("/ranges/0/2", 0), HasSubstr("bytes of a range"));
  EXPECT_THAT(refused("/ranges/0/2", kMaxRangeBytes + 1), HasSubstr("bytes of a range"));
  EXPECT_THAT(refused("/ranges/1/1", 0), HasSubstr("overlaps"));
  EXPECT_THAT(refused("/ranges/0/3", "xyz"), HasSubstr("digest"));
  EXPECT_THAT(refused("/ranges/0/4", 5), HasSubstr("unit of a range"));
  EXPECT_THAT(refused("/ranges/0/5", 3), HasSubstr("layer of a range"));
  EXPECT_THAT(refused("/ranges/0", "x"), HasSubstr("[file, offset"));
  EXPECT_THAT(refused("/entry", "other"), HasSubstr("none of the files"));
  EXPECT_THAT(refused("/version", 1), HasSubstr("version"));
}

}  // namespace
}  // namespace headrace::cluster
