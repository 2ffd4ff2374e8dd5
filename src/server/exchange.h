#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "server/http_message.h"
#include "server/responder.h"

namespace headrace::server {

/// Who asks.
struct Caller {
  std::string name = {};        ///< of the key, for logs; empty: keys are not asked for
  std::string tenant = {};      ///< for fairness between callers
  std::string cache_salt = {};  ///< callers of different salts do not share cached prefixes
  bool is_admin = false;
  bool reads_metrics = false;  ///< admins do too
};

/// A request on its way through an endpoint.
struct Exchange {
  HttpRequest request;
  std::shared_ptr<Responder> responder;
  std::string request_id;  ///< the client's x-request-id, else made here; every answer carries it
  Caller caller;
};

}  // namespace headrace::server
