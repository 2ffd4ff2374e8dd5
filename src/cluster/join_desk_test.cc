#include "cluster/join_desk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "cluster/test_links.h"

namespace headrace::cluster {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

const Credentials kHead{"head", "a secret of a test", "of the head"};
const Credentials kWorker{"worker", "a secret of a test", "of a worker"};

/// A worker that calls a desk and answers what it is asked, until it is destroyed or the desk hangs up.
class Guest {
 public:
  Guest(const JoinDesk& desk, const std::string& name)
      : address_(cat("127.0.0.1:", desk.port())), link_(make_tcp_network({})->connect(address_, soon()).value()) {
    EXPECT_TRUE(open_handshake(*link_, kWorker, join_purpose(name), soon()).ok());
    thread_ = std::thread([this] {
      serve_control(*link_, [this](const std::string& what, const json& fields, const TaskProgress&) {
        return answer(what, fields);
      });
      gone_.set_value();
    });
  }
  ~Guest() {
    link_->close();
    thread_.join();
  }

  /// Why it was sent away.
  std::string farewell() {
    EXPECT_EQ(gone_.get_future().wait_until(soon()), std::future_status::ready);
    return farewell_;
  }
  /// The data connection that it has opened.
  std::unique_ptr<Link> data;

 private:
  json answer(const std::string& what, const json& fields) {
    if (what == "describe") return to_json(NodeDescription{.build = "b", .isa = "ref", .threads = 1});
    if (what == "leave") farewell_ = fields.at("why").get<std::string>();
    if (what == "dial") {
      data = open_data_link(*make_tcp_network({}), address_, fields.at("key").get<std::string>(),
                            fields.at("as").get<std::string>(), soon())
                 .value();
    }
    return json::object();
  }

  std::string address_;
  std::unique_ptr<Link> link_;
  std::string farewell_;
  std::promise<void> gone_;
  std::thread thread_;
};

JoinDesk desk_for(size_t number, const std::vector<std::string>& names = {}) {
  return JoinDesk("127.0.0.1:0", {}, kHead, {.names = names, .number = number}, [](const Caller&) {});
}

std::string error_of(const std::function<void()>& task) {
  try {
    task();
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(JoinDesk, NamesAreInOrderWhoeverCallsFirst) {
  JoinDesk desk = desk_for(3);
  auto gathered = std::async(std::launch::async, [&] { return desk.gather(30); });
  const Guest c(desk, "c"), a(desk, "a"), b(desk, "b");
  EXPECT_THAT(gathered.get(), ElementsAre("a", "b", "c"));
  EXPECT_EQ(desk.take("b")->name, "b");
  EXPECT_FALSE(desk.take("b").has_value());
}

TEST(JoinDesk, NamesThatAreKnownHaveTheirOrder) {
  JoinDesk desk = desk_for(2, {"b", "a"});
  const Guest a(desk, "a");
  EXPECT_THAT(Guest(desk, "c").farewell(), HasSubstr("there are places for b, a only"));
  EXPECT_THAT(error_of([&] { (void)desk.gather(0.01); }), HasSubstr("1 of 2 has joined (a), 1 is missing (b) after"));
  const Guest b(desk, "b");
  EXPECT_THAT(desk.gather(30), ElementsAre("b", "a"));
}

TEST(JoinDesk, TellsWhoIsMissing) {
  JoinDesk desk = desk_for(3);
  const Guest a(desk, "a");
  EXPECT_TRUE(desk.missing({"a"}, soon()).empty());
  EXPECT_THAT(error_of([&] { (void)desk.gather(0.01); }),
              HasSubstr("1 of 3 has joined (a), 2 are missing after 0.01 s"));
  EXPECT_THAT(desk.missing({"a", "b"}, after(0.01)), ElementsAre("b"));
}

TEST(JoinDesk, ANameIsForOne) {
  JoinDesk desk = desk_for(1);
  {
    const Guest first(desk, "a");
    EXPECT_THAT(desk.gather(30), ElementsAre("a"));
    EXPECT_THAT(Guest(desk, "a").farewell(), HasSubstr("a worker of the name a waits here"));
    EXPECT_THAT(Guest(desk, "b").farewell(), HasSubstr("there are places for a only"));
    const std::optional<Caller> taken = desk.take("a");
    EXPECT_THAT(Guest(desk, "a").farewell(), HasSubstr("a worker of the name a is at work"));
    desk.release("a");
  }
  // Whoever waits and is gone makes room, and so does who was released.
  {
    const Guest second(desk, "a");
    EXPECT_TRUE(desk.missing({"a"}, soon()).empty());
  }
  const Guest third(desk, "a");
  const Deadline deadline = soon();
  while (!desk.take("a") && std::chrono::steady_clock::now() < deadline) {
    (void)desk.missing({"a"}, after(0.1));
  }
  EXPECT_THAT(Guest(desk, "a").farewell(), HasSubstr("is at work"));
}

TEST(JoinDesk, WhoCannotBeOfTheClusterIsToldWhy) {
  JoinDesk desk("127.0.0.1:0", {}, kHead, {.names = {}, .number = 1}, [](const Caller& caller) {
    if (caller.name == "odd") throw Error(ErrorCode::kUnsupported, "its build is another");
  });
  EXPECT_THAT(Guest(desk, "odd").farewell(), HasSubstr("its build is another"));
  EXPECT_THAT(Guest(desk, "head").farewell(), HasSubstr("odd name"));
  EXPECT_THAT(Guest(desk, "a b").farewell(), HasSubstr("odd name"));
  EXPECT_THAT(Guest(desk, std::string(65, 'a')).farewell(), HasSubstr("odd name"));
  EXPECT_THAT(desk.missing({"odd"}, after(0.01)), ElementsAre("odd"));
}

TEST(JoinDesk, DataConnectionsAreOpenedFromOutside) {
  JoinDesk desk = desk_for(1);
  Guest guest(desk, "a");
  EXPECT_TRUE(desk.missing({"a"}, soon()).empty());
  const Caller caller = *desk.take("a");
  const auto dial = [&](const std::string& as, const std::string& key) {
    caller.control->ask("dial", {{"as", as}, {"key", key}}, 30);
  };
  const std::unique_ptr<Link> link = desk.fetch(dial, "plans", 30).value();
  const std::string text = "over the new connection";
  ASSERT_TRUE(link->send({.kind = FrameKind::kBytes, .id = 7}, std::array{bytes_of(text)}, soon()).ok());
  std::vector<std::byte> payload;
  EXPECT_EQ(guest.data->receive(payload, soon()).value().id, 7U);
  EXPECT_EQ(text_of(payload), text);
  // Nobody comes, or the worker refuses.
  EXPECT_EQ(desk.fetch([](const auto&, const auto&) {}, "plans", 0.01).error().code(), ErrorCode::kTimeout);
  EXPECT_EQ(error_of([&] {
              (void)desk.fetch([](const auto&, const auto&) { throw Error(ErrorCode::kUnavailable, "not now"); },
                               "plans", 30);
            }),
            "not now");
}

}  // namespace
}  // namespace headrace::cluster
