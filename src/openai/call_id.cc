#include "openai/call_id.h"

#include <random>
#include <string_view>

namespace headrace::openai {

std::string random_name(size_t length) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  thread_local std::random_device device;
  std::uniform_int_distribution<size_t> one(0, kLetters.size() - 1);
  std::string name;
  for (size_t i = 0; i < length; ++i) name += kLetters[one(device)];
  return name;
}

}  // namespace headrace::openai
