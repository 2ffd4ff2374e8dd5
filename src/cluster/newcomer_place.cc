#include "cluster/newcomer_place.h"

#include <map>

namespace headrace::cluster {
namespace {

struct Guests {
  size_t oldest = 0;
  size_t number = 0;
};

}  // namespace

size_t place_for_newcomer(std::span<const std::string_view> peers) {
  std::map<std::string_view, Guests> hosts;
  for (size_t i = 0; i < peers.size(); ++i) {
    Guests& guests = hosts[peers[i].substr(0, peers[i].rfind(':'))];
    if (guests.number++ == 0) guests.oldest = i;
  }
  Guests chosen;
  for (const auto& [host, guests] : hosts) {
    const bool is_older = guests.number == chosen.number && guests.oldest < chosen.oldest;
    if (guests.number > chosen.number || is_older) chosen = guests;
  }
  return chosen.oldest;
}

}  // namespace headrace::cluster
