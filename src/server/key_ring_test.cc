#include "server/key_ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/cat.h"
#include "server/caller_limiter.h"
#include "server/error_reply.h"

namespace headrace::server {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// A file that only its owner can read, for the life of the object.
class KeyFile {
 public:
  explicit KeyFile(const std::string& text)
      : path_(cat(::testing::TempDir(), "keys-", getpid(), "-",
                  ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::ofstream(path_) << text;
    permit(std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  }
  ~KeyFile() { std::filesystem::remove(path_); }
  KeyFile(const KeyFile&) = delete;
  KeyFile& operator=(const KeyFile&) = delete;
  void permit(std::filesystem::perms perms) const { std::filesystem::permissions(path_, perms); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

HttpRequest with(std::vector<Header> headers) {
  HttpRequest request;
  request.headers = std::move(headers);
  return request;
}

/// The name of whose key a request with these headers carries; "nobody".
std::string name_of(const KeyRing& ring, std::vector<Header> headers) {
  const std::optional<Caller> caller = ring.identify(with(std::move(headers)));
  return caller ? caller->name : "nobody";
}

std::string load_error(const std::string& text) {
  const KeyFile file(text);
  try {
    (void)KeyRing::load(file.path());
  } catch (const Error& error) {
    std::string message = error.message();
    EXPECT_THAT(message, HasSubstr(file.path()));
    return message.substr(file.path().size());
  }
  return "no error";
}

TEST(KeyRing, KnowsCallersByEitherHeader) {
  const KeyFile file(
      "# a comment\n"
      "\n"
      "  sk-alice  name=alice tenant=blue rpm=90.5 concurrency=4   # of the blue team\r\n"
      "sk-bob#1 name=bob admin\n");
  const KeyRing ring = KeyRing::load(file.path());
  EXPECT_TRUE(ring.asks_for_keys());
  EXPECT_EQ(name_of(ring, {{"authorization", "Bearer sk-alice"}}), "alice");
  EXPECT_EQ(name_of(ring, {{"authorization", "bearer   sk-alice "}}), "alice");
  EXPECT_EQ(name_of(ring, {{"x-api-key", "sk-bob#1"}}), "bob") << "a '#' within a word begins no comment";
  EXPECT_EQ(name_of(ring, {{"authorization", "Bearer of a gateway"}, {"x-api-key", "sk-alice"}}), "alice");
  for (const std::string wrong : {"sk-alic", "sk-alicee", "SK-ALICE", "sk-bob", "#", "name=alice", " "}) {
    EXPECT_EQ(name_of(ring, {{"authorization", "Bearer " + wrong}}), "nobody") << wrong;
    EXPECT_EQ(name_of(ring, {{"x-api-key", wrong}}), "nobody") << wrong;
  }
  EXPECT_EQ(name_of(ring, {{"authorization", "Basic sk-alice"}}), "nobody");
  EXPECT_EQ(name_of(ring, {{"authorization", "Basic YW55OnNrLWFsaWNl"}}), "alice") << "any:sk-alice, from a browser";
  EXPECT_EQ(name_of(ring, {{"authorization", "Basic OnNrLWJvYiMx"}}), "bob") << ":sk-bob#1";
  EXPECT_EQ(name_of(ring, {{"authorization", "Basic YTpzay1hbGljZQ=="}}), "alice") << "a:sk-alice, padded";
  for (const std::string wrong : {"c2stYWxpY2U=", "YTpzay1hbGljZ", "====", "!!!!", "YTo="}) {
    EXPECT_EQ(name_of(ring, {{"authorization", "Basic " + wrong}}), "nobody") << wrong;
  }
  EXPECT_EQ(name_of(ring, {{"authorization", "sk-alice"}}), "nobody");
  EXPECT_EQ(name_of(ring, {{"authorization", "Bearer"}}), "nobody");
  EXPECT_EQ(name_of(ring, {}), "nobody");

  const Caller alice = *ring.identify(with({{"x-api-key", "sk-alice"}}));
  EXPECT_EQ(alice.tenant, "blue");
  EXPECT_FALSE(alice.is_admin);
  EXPECT_EQ(ring.limits_of(alice), (CallerLimits{.concurrent_requests = 4, .requests_per_minute = 90.5}));
  const Caller bob = *ring.identify(with({{"x-api-key", "sk-bob#1"}}));
  EXPECT_EQ(bob.tenant, "bob");
  EXPECT_TRUE(bob.is_admin);
  EXPECT_EQ(ring.limits_of(bob), CallerLimits());
}

TEST(KeyRing, WithoutAFileEveryoneIsTheSameAdmin) {
  const KeyRing ring;
  EXPECT_FALSE(ring.asks_for_keys());
  const std::optional<Caller> caller = ring.identify(with({{"authorization", "Bearer anything"}}));
  ASSERT_TRUE(caller);
  EXPECT_TRUE(caller->is_admin);
  EXPECT_EQ(caller->name, "");
  EXPECT_EQ(caller->cache_salt, "");
}

TEST(KeyRing, TenantsShareNoCachedPrefixes) {
  const KeyFile file(
      "k1 name=a tenant=x\nk2 name=b tenant=x\nk3 name=c tenant=y\n"
      "k4 name=d tenant=z salt=x\nk5 name=e tenant=w salt=tenant=x\nk6 name=f salt=x\n");
  const KeyRing ring = KeyRing::load(file.path());
  const auto salt = [&](const std::string& key) { return ring.identify(with({{"x-api-key", key}}))->cache_salt; };
  EXPECT_EQ(salt("k1"), salt("k2"));
  EXPECT_EQ(salt("k4"), salt("k6")) << "an operator may join two tenants";
  EXPECT_NE(salt("k1"), salt("k3"));
  EXPECT_NE(salt("k1"), salt("k4")) << "no salt= is the salt of another tenant";
  EXPECT_NE(salt("k1"), salt("k5"));
}

TEST(KeyRing, ANamelessKeyIsNamedByItsDigest) {
  const KeyFile file("secret\n");
  const std::string name = KeyRing::load(file.path()).identify(with({{"x-api-key", "secret"}}))->name;
  EXPECT_EQ(name, "key-2bb80d53") << "the first bytes of sha256(\"secret\")";
}

TEST(KeyRing, TwoKeysMayBeOneCaller) {
  const KeyFile file("new name=a rpm=5\nold name=a rpm=5\n");
  const KeyRing ring = KeyRing::load(file.path());
  EXPECT_EQ(name_of(ring, {{"x-api-key", "new"}}), "a");
  EXPECT_EQ(name_of(ring, {{"x-api-key", "old"}}), "a");
  EXPECT_THAT(load_error("new name=a rpm=5\nold name=a rpm=6\n"), HasSubstr("line 2: another key of \"a\""));
  EXPECT_THAT(load_error("new name=a\n\nold name=a admin\n"), HasSubstr("line 3: another key of \"a\""));
}

TEST(KeyRing, BadLinesAreNamedAndShowNoKey) {
  const std::string secret = "sk-hidden";
  for (const std::string rest : {"sk-hidden2", "sk-hidden2=", "nmae=x", "name=", "name", "rpm=0", "rpm=-1", "rpm=1e99",
                                 "rpm=nan", "rpm=5x", "concurrency=1.5", "concurrency=99999999999", "Admin"}) {
    EXPECT_THAT(load_error(cat("# first\n", secret, " ", rest, "\n")),
                AllOf(HasSubstr("line 2: "), Not(HasSubstr("sk-hidden"))))
        << rest;
  }
  EXPECT_THAT(load_error(secret + "\n" + secret + "\n"),
              AllOf(HasSubstr("line 2: the same key"), Not(HasSubstr(secret))));
  EXPECT_THAT(load_error("sk-\xc3\xa9\n"), HasSubstr("line 1: the key holds"));
  EXPECT_THAT(load_error("# nothing\n\n"), HasSubstr("no key"));
  EXPECT_THROW((void)KeyRing::load("/no/such/file"), Error);
  EXPECT_THROW((void)KeyRing::load(::testing::TempDir()), Error) << "a folder";
}

TEST(KeyRing, WarnsOfAFileThatAllCanRead) {
  const KeyFile file("secret\n");
  ::testing::internal::CaptureStderr();
  (void)KeyRing::load(file.path());
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  file.permit(std::filesystem::perms::owner_read | std::filesystem::perms::others_read);
  ::testing::internal::CaptureStderr();
  (void)KeyRing::load(file.path());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr(file.path()), HasSubstr("chmod"), Not(HasSubstr("secret"))));
}

/// A limiter and a clock that only the test moves.
class Limits : public ::testing::Test {
 protected:
  /// Seconds until the request would be taken; nullopt where it is taken, and its ticket kept.
  std::optional<double> refused(const std::string& caller, const CallerLimits& limits) {
    try {
      tickets_.push_back(limiter_.admit(caller, limits, now_));
    } catch (const StatusError& error) {
      EXPECT_EQ(error.fields().status, 429);
      EXPECT_EQ(error.fields().type, "rate_limit_error");
      EXPECT_EQ(error.fields().code, "quota");
      EXPECT_THAT(error.message(), HasSubstr(caller));
      return error.fields().retry_after_seconds;
    }
    return std::nullopt;
  }

  CallerLimiter limiter_;
  CallerLimiter::Time now_{std::chrono::hours(5)};
  std::vector<CallerLimiter::Ticket> tickets_;
};

TEST_F(Limits, RequestsAtOnceEndWithTheirTickets) {
  const CallerLimits two{.concurrent_requests = 2};
  EXPECT_FALSE(refused("a", two));
  EXPECT_FALSE(refused("a", two));
  EXPECT_GT(refused("a", two), 0);
  EXPECT_FALSE(refused("b", two)) << "callers are counted apart";
  tickets_.erase(tickets_.begin());
  EXPECT_FALSE(refused("a", two));
  EXPECT_TRUE(refused("a", two));
  CallerLimiter::Ticket moved = std::move(tickets_.back());
  tickets_.back() = std::move(moved);
  EXPECT_TRUE(refused("a", two)) << "a moved ticket holds one place";
}

TEST_F(Limits, TicketsMayOutliveTheLimiter) {
  CallerLimiter::Ticket ticket;
  {
    CallerLimiter limiter;
    ticket = limiter.admit("a", {.concurrent_requests = 1}, now_);
  }
}

TEST_F(Limits, TheRateIsABucketOfTenSeconds) {
  const CallerLimits limits{.requests_per_minute = 30};  // one in 2 s, 5 in the bucket
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(refused("a", limits)) << i;
  EXPECT_DOUBLE_EQ(refused("a", limits).value(), 2);
  now_ += milliseconds(1500);
  EXPECT_DOUBLE_EQ(refused("a", limits).value(), 0.5) << "what is refused costs nothing";
  now_ += milliseconds(500);
  EXPECT_FALSE(refused("a", limits));
  EXPECT_TRUE(refused("a", limits));
  now_ += std::chrono::hours(1);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(refused("a", limits)) << i;
  EXPECT_TRUE(refused("a", limits)) << "the bucket does not overflow";
}

TEST_F(Limits, ASlowRateStillAllowsOneAtOnce) {
  const CallerLimits limits{.requests_per_minute = 1};
  EXPECT_FALSE(refused("a", limits));
  EXPECT_DOUBLE_EQ(refused("a", limits).value(), 60);
  now_ += std::chrono::seconds(60);
  EXPECT_FALSE(refused("a", limits));
}

TEST_F(Limits, WithoutLimitsNothingIsCounted) {
  for (int i = 0; i < 1000; ++i) ASSERT_FALSE(refused("a", {}));
}

}  // namespace
}  // namespace headrace::server
