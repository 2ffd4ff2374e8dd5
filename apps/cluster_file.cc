#include "apps/cluster_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <deque>
#include <iterator>

#include "apps/address_check.h"
#include "apps/serve_flags.h"
#include "apps/worker_flags.h"
#include "base/error.h"
#include "cluster/join_desk.h"
#include "files/options_file.h"

namespace headrace {
namespace {

/// Gives `own` what it has no value of its own for.
void fill_in(std::string& own, const std::string& common) {
  if (own.empty()) own = common;
}

/// Files that secure the links, those that all machines have in common.
struct LinkFiles {
  std::string secret, certificate, key, authority;

  void fill_into(std::string& own_secret, std::string& own_certificate, std::string& own_key,
                 std::string& own_authority) const {
    fill_in(own_secret, secret);
    fill_in(own_certificate, certificate);
    fill_in(own_key, key);
    fill_in(own_authority, authority);
  }
};

struct WorkerEntry {
  std::string place;  ///< "cluster.yaml:7"
  WorkerSettings settings;
  std::string address;  ///< at which the head calls it; empty: it joins
  [[nodiscard]] const std::string& name() const noexcept { return settings.config.name; }
};

/// What the file says. `head` is where the head's part goes.
class ClusterFile {
 public:
  ClusterFile(const std::string& path, ServeSettings& head) : path_(path), head_(head) {
    std::vector<Option> common = link_flags(links_.secret, links_.certificate, links_.key, links_.authority);
    common.push_back({.name = "model", .target = &model_, .value_name = "MODEL", .help = "model that is served"});
    const std::array sections = {
        OptionsSection{.key = "head", .add = [this](const std::string& place) { return head_options(place); }},
        OptionsSection{.key = "workers",
                       .is_list = true,
                       .add = [this](const std::string& place) { return worker_options(place); }},
        OptionsSection{.key = "nodes"},  // of headrace plan
    };
    read_options_file(path, common, sections);
    check();
  }

  void finish_head() {
    fill_in(head_.model, model_);
    ClusterOptions& cluster = head_.cluster.options;
    if (!workers_.empty()) links_.fill_into(cluster.secret_file, cluster.certificate, cluster.key, cluster.authority);
    head_.cluster.workers.clear();
    for (const WorkerEntry& worker : workers_) {
      const bool joins = worker.address.empty();
      head_.cluster.workers += cat(head_.cluster.workers.empty() ? "" : ",", joins ? worker.name() : worker.address);
      if (joins && cluster.join_listen.empty()) cluster.join_listen = all_addresses(head_address_);
    }
  }

  [[nodiscard]] WorkerSettings worker(std::string node) const {
    if (workers_.empty()) fail(path_, "workers: there are none; list the machines that run headrace worker");
    if (node.empty()) node = host_name();
    auto found = std::ranges::find(workers_, node, &WorkerEntry::name);
    if (found == workers_.end())
      found = std::ranges::find(workers_, node.substr(0, node.find('.')), &WorkerEntry::name);
    if (found == workers_.end()) {
      std::vector<std::string> names;
      for (const WorkerEntry& worker : workers_) names.push_back(worker.name());
      fail(path_, cat("workers: none is named ", printable(node),
                      "; say by --node which one this machine is: ", fmt::to_string(fmt::join(names, ", "))));
    }
    WorkerSettings settings = found->settings;
    cluster::WorkerConfig& config = settings.config;
    if (found->address.empty()) {
      fill_in(config.join, head_address_);
    } else {
      config.name.clear();
      if (config.listen == WorkerSettings::kDefaultListen) config.listen = all_addresses(found->address);
    }
    links_.fill_into(config.secret_file, config.tls.certificate, config.tls.key, config.tls.authority);
    return settings;
  }

 private:
  [[noreturn]] static void fail(const std::string& place, const std::string& what) {
    throw LoadError(place, what, ErrorCode::kInvalidArgument);
  }

  /// The port of `address`, on whatever addresses the machine has.
  static std::string all_addresses(const std::string& address) {
    return cat(address.starts_with('[') ? "[::]" : "0.0.0.0", address.substr(address.rfind(':')));
  }

  std::vector<Option> head_options(const std::string& place) {
    head_place_ = place;
    return options_of(serve_flags(head_), head_address_, "where workers that join call the head");
  }

  std::vector<Option> worker_options(const std::string& place) {
    WorkerEntry& worker = workers_.emplace_back();
    worker.place = place;
    return options_of(worker_flags(worker.settings), worker.address, "at which the head calls it");
  }

  /// The flags, without what leads to the file and what follows from it, and the address.
  static std::vector<Option> options_of(const std::vector<OptionGroup>& flags, std::string& address,
                                        std::string_view help) {
    std::vector<Option> options;
    for (const OptionGroup& group : flags) {
      std::ranges::copy_if(group.options, std::back_inserter(options), [](const Option& option) {
        return option.name != "config" && option.name != "node" && option.name != "workers";
      });
    }
    options.push_back({.name = "address", .target = &address, .value_name = "HOST:PORT", .help = help});
    return options;
  }

  void check() const {
    if (!head_address_.empty()) check_peer_address(cat(head_place_, ": head: address"), head_address_);
    for (size_t i = 0; i < workers_.size(); ++i) check_worker(i);
  }

  void check_worker(size_t number) const {
    const WorkerEntry& worker = workers_[number];
    const std::string where =
        cat("workers, entry ", number + 1, worker.name().empty() ? "" : cat(" (", worker.name(), ")"));
    const auto fail_here = [&](std::string_view what) { fail(worker.place, cat(where, ": ", what)); };
    if (!cluster::is_worker_name(worker.name())) {
      fail_here("expected a name of 1 to 64 letters, digits, '.', '_' or '-', not 'head'");
    }
    for (size_t i = 0; i < number; ++i) {
      if (workers_[i].name() == worker.name()) fail_here("another entry has the same name");
      if (!worker.address.empty() && workers_[i].address == worker.address)
        fail_here(cat("address: ", printable(worker.address), " is that of entry ", i + 1, ", too"));
    }
    if (worker.address.empty()) {
      if (!head_address_.empty()) return;
      fail_here("give its address (HOST:PORT), at which the head calls it, or the head's, which it then joins");
    }
    check_peer_address(cat(worker.place, ": ", where, ": address"), worker.address);
    if (!worker.settings.config.join.empty()) {
      fail_here(
          "address, at which the head calls it, beside join, by which it calls the head; give the one or the other");
    }
  }

  std::string path_;
  ServeSettings& head_;
  std::string model_;
  LinkFiles links_;
  std::string head_place_, head_address_;
  std::deque<WorkerEntry> workers_;  // options point into them
};

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::vector<Option> config_rows(ConfigFlags& flags, bool is_worker) {
  std::vector<Option> rows = {{.name = "config",
                               .target = &flags.config,
                               .value_name = "FILE",
                               .default_text = "none",
                               .help = "YAML file that says what model and machines there are; flags count more"}};
  if (is_worker) {
    rows.push_back({.name = "node",
                    .target = &flags.node,
                    .value_name = "NAME",
                    .default_text = "the host's name",
                    .help = "which of the file's workers this one is"});
  }
  return rows;
}

void read_head_part(ServeSettings& settings) { ClusterFile(settings.file.config, settings).finish_head(); }

void read_worker_part(WorkerSettings& settings) {
  ServeSettings head;
  const ConfigFlags flags = settings.file;
  settings = ClusterFile(flags.config, head).worker(flags.node);
  settings.file = flags;
}

}  // namespace headrace
