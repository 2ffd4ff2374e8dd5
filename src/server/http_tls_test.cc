#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "base/error.h"
#include "cluster/test_certificates.h"
#include "server/http_server.h"
#include "server/raw_client.h"

namespace headrace::server {
namespace {

std::string file(const std::string& name) { return testing::TempDir() + name; }

class HttpTls : public testing::Test {
 protected:
  void SetUp() override {
    const cluster::TestKey key(EVP_EC_gen("P-256"));
    cluster::write_key(file("key.pem"), key.get());
    cluster::write_certificate(file("chain.pem"),
                               cluster::make_certificate("localhost", key.get(), nullptr, key.get()).get());
  }
  static HttpOptions options() { return {.port = 0, .tls_certificate = file("chain.pem"), .tls_key = file("key.pem")}; }
  static void say_hello(HttpRequest&& request, std::shared_ptr<Responder> responder) {
    if (request.path == "/large") return responder->send({.body = std::string(4 << 20, 'x')});
    responder->begin({});
    responder->write("hello");
    responder->finish();
  }
};

// TLS over a RawClient's socket.
class TlsClient {
 public:
  explicit TlsClient(uint16_t port, int max_version = 0) : raw_(port), context_(SSL_CTX_new(TLS_client_method())) {
    SSL_CTX_set_max_proto_version(context_.get(), max_version);
    SSL_CTX_set_security_level(context_.get(), 0);
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_fd(ssl_.get(), raw_.fd());
    connected_ = SSL_connect(ssl_.get()) == 1;
  }
  bool connected() const { return connected_; }
  std::string version() const { return SSL_get_version(ssl_.get()); }
  void send(std::string_view bytes) { SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size())); }
  std::string read_until(std::string_view end) {
    std::string out;
    char bytes[4096];
    while (!out.ends_with(end)) {
      const int count = SSL_read(ssl_.get(), bytes, sizeof bytes);
      if (count <= 0) break;
      out.append(bytes, static_cast<size_t>(count));
    }
    return out;
  }
  /// The server said that nothing more comes.
  bool ended_in_order() {
    char byte;
    return SSL_read(ssl_.get(), &byte, 1) == 0 && SSL_get_error(ssl_.get(), 0) == SSL_ERROR_ZERO_RETURN;
  }
  RawClient& raw() { return raw_; }

 private:
  RawClient raw_;
  std::unique_ptr<SSL_CTX, cluster::Freed<SSL_CTX_free>> context_;
  std::unique_ptr<SSL, cluster::Freed<SSL_free>> ssl_;
  bool connected_ = false;
};

TEST_F(HttpTls, AnswersOverTls12And13) {
  HttpServer server(options(), say_hello);
  for (const auto& [limit, name] : {std::pair(TLS1_2_VERSION, "TLSv1.2"), std::pair(TLS1_3_VERSION, "TLSv1.3")}) {
    TlsClient client(server.port(), limit);
    ASSERT_TRUE(client.connected());
    EXPECT_EQ(client.version(), name);
    for (int i = 0; i < 2; ++i) {
      client.send(get("/"));
      EXPECT_EQ(body_of(client.read_until("0\r\n\r\n")), "5\r\nhello\r\n0\r\n\r\n");
    }
    client.send("GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    EXPECT_EQ(body_of(client.read_until("no end")).size(), size_t{4} << 20);
    EXPECT_TRUE(client.ended_in_order());
  }
  EXPECT_FALSE(TlsClient(server.port(), TLS1_1_VERSION).connected());
}

TEST_F(HttpTls, MissesClientsAndSurvivesPlainOnes) {
  std::atomic<int> gone = 0;
  std::shared_ptr<Responder> kept;
  std::atomic<bool> arrived = false;
  HttpServer server(options(), [&](HttpRequest&&, std::shared_ptr<Responder> responder) {
    responder->on_gone([&] { ++gone; });
    kept = std::move(responder);
    arrived = true;
  });
  RawClient plain(server.port());
  plain.send(get("/"));
  plain.read_all();
  auto client = std::make_unique<TlsClient>(server.port());
  client->send(get("/"));
  while (!arrived) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  client->raw().close();
  for (int i = 0; i < 10'000 && gone == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(gone, 1);
}

TEST_F(HttpTls, EndsWithConnectionsInEveryState) {
  auto server = std::make_unique<HttpServer>(options(), [](HttpRequest&&, std::shared_ptr<Responder>) {});
  RawClient silent(server->port());
  TlsClient idle(server->port());
  TlsClient dropped(server->port());
  dropped.send(get("/"));
  EXPECT_TRUE(dropped.ended_in_order());
  server.reset();
  EXPECT_FALSE(idle.ended_in_order());
}

TEST_F(HttpTls, NamesTheFileThatItCannotUse) {
  const auto message = [](HttpOptions refused) {
    try {
      const HttpServer server(std::move(refused), say_hello);
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("no error");
  };
  HttpOptions missing = options();
  missing.tls_certificate = file("none.pem");
  EXPECT_NE(message(missing).find("none.pem: cannot be used as a chain of certificates in PEM: "), std::string::npos);
  HttpOptions other = options();
  other.tls_key = file("other.pem");
  cluster::write_key(other.tls_key, cluster::TestKey(EVP_EC_gen("P-256")).get());
  EXPECT_NE(message(other).find("other.pem: cannot be used as the private key in PEM: "), std::string::npos)
      << message(other);
  std::ofstream(file("other.pem")) << "no key";
  EXPECT_NE(message(other).find("other.pem: cannot be used as the private key in PEM: "), std::string::npos);
  HttpOptions half = options();
  half.tls_key.clear();
  EXPECT_EQ(message(half), "TLS needs both a certificate and a key, found only one of the files");
}

}  // namespace
}  // namespace headrace::server
