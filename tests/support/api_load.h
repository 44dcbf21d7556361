// Load on the API over its Unix socket: requests at a given rate from many clients that keep their
// connections, whatever the server does meanwhile. Times count from when a request was due, so a
// server that stalls cannot hide it by slowing the clients. One thread, poll(2).
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "dataplane/base/numbers/histogram.h"

namespace paceline::test {

struct LoadPlan {
  std::string socket;
  std::vector<std::string> targets;  // of GET, in turn
  unsigned clients = 64;
  unsigned per_second = 1000;
  std::chrono::milliseconds length{3000};
  std::chrono::milliseconds patience{10'000};  // for the last replies
};

struct LoadResult {
  std::uint64_t due = 0;
  std::uint64_t answered = 0;
  std::uint64_t reconnected = 0;  // connections the server ended
  std::map<unsigned, std::uint64_t> statuses;
  Histogram nanoseconds;
  std::string wrong;  // not empty: it could not go on

  std::uint64_t lost() const { return due - answered; }
  std::uint64_t failed() const;  // 5xx
};

LoadResult run_load(const LoadPlan& plan);

}  // namespace paceline::test
