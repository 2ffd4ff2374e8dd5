#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headrace {

/// Machines over which a model is spread, beside this one. Without any the model is all here.
struct ClusterOptions {
  /// "host:port" of each, in the order of the pipeline; without ":port" the name of one that joins.
  std::vector<std::string> workers = {};
  std::string join_listen = {};  ///< "host:port" where workers call that join; empty: none do
  /// Where `workers` names none that joins: after those, as many, in the order of their names.
  int32_t wait_for_workers = 1;
  double join_timeout_seconds = 300;       ///< how long the start waits for them
  std::string secret_file = {};            ///< a secret that head and workers share; empty: none, on both sides
  std::string certificate = {}, key = {};  ///< TLS, PEM files: this process's own
  std::string authority = {};              ///< PEM file: who must have signed the workers' certificates
  /// Layers of each machine, this one first, in halves (a layer's attention or its feed-forward); empty: by measured
  /// ability.
  std::vector<double> pipeline_layers = {};
  std::string output_stage = "auto";   ///< "auto", "head", "last": who has the output projection
  std::string placement = "speed";     ///< "speed" or "kv": what counts first
  std::string wire_dtype = "f32";      ///< of activations between machines: "f32", "bf16", "f16", "int8"
  int64_t memory_bytes = 0;            ///< of weights, workspace and cache here; 0: most of what is free
  int32_t steps_in_flight = 0;         ///< 0: found
  double rejoin_timeout_seconds = 30;  ///< how long running requests wait for a lost worker to come back
  bool allow_other_builds = false;     ///< workers of another build are taken

  [[nodiscard]] bool is_used() const noexcept { return !workers.empty() || !join_listen.empty(); }
  /// Whether this one of `workers` is not called, but calls.
  [[nodiscard]] static bool joins(const std::string& worker) noexcept { return worker.find(':') == worker.npos; }
};

/// One machine of a cluster. Times are sums since the pipeline began, in seconds.
struct ClusterNode {
  std::string name;  ///< "head", or a worker's address or, if it has joined, name
  std::string isa;
  int32_t threads = 0;
  /// In layers; a half is a layer's attention or its feed-forward: from 7.5 on begins with the feed-forward of layer 7.
  double first_layer = 0, num_layers = 0;
  std::string layers;  ///< the same in words
  bool embedding = false, output = false;
  int64_t memory_bytes = 0;  ///< that it may use
  int64_t weight_bytes = 0, kv_bytes = 0;
  bool up = true;
  double busy_seconds = 0;  ///< CPU time inside operators, of the thread that leads them
  double compute_seconds = 0, serialise_seconds = 0, wait_seconds = 0, wire_seconds = 0;
  int64_t bytes_sent = 0, bytes_received = 0;  ///< by the head to and from it
  double round_trip_seconds = 0;               ///< of heartbeats, lately
  int64_t missed_heartbeats = 0;
};

/// What a cluster does.
struct ClusterFigures {
  std::vector<ClusterNode> nodes;  ///< the head first; empty: the model is on one machine
  bool up = true;                  ///< false: a worker is lost, and steps wait for it
  double seconds = 0;              ///< since the pipeline began
  int64_t steps = 0;
  int64_t tokens = 0;  ///< rows that went from machine to machine
  int32_t steps_in_flight = 0, steps_in_flight_limit = 1;
  std::string placement;  ///< why the layers are where they are, one line
  int64_t losses = 0;     ///< times that a worker was lost
};

}  // namespace headrace
