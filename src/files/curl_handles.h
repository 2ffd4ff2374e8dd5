#pragma once

#include <curl/curl.h>

#include "base/error.h"

namespace headrace {

/// Frees what libcurl gives out. Not the handles of its multi interface, which have the same type as the easy ones.
struct CurlDeleter {
  void operator()(CURL* easy) const noexcept { curl_easy_cleanup(easy); }
  void operator()(CURLU* url) const noexcept { curl_url_cleanup(url); }
  void operator()(curl_slist* list) const noexcept { curl_slist_free_all(list); }
};

/// To be called before libcurl is used; only the first call does something. Any thread. Throws Error.
inline void start_libcurl() {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (started != CURLE_OK) throw Error(ErrorCode::kInternal, "libcurl cannot be started");
}

}  // namespace headrace
