// A rank's side of the socket over which the ranks of a collective meet: the parent passes on
// addresses, synchronises all ranks, and takes results. Messages, one JSON object each:
//
//   rank     {"rank": R}
//   rank     {"addresses": [ADDRESS of its queue pair for each of its peers]}
//   parent   {"addresses": [ADDRESS of each of its peers' queue pairs for it]}
//   rank     {"wait": N}, N from 0
//   parent   {"go": N, "at_ns": when, by the monotonic clock} once every rank waits
//   rank     {"size": I, "mean_us": T, "wrong": elements, "element", "expected", "got": the first}
//   rank     {"failed": TEXT}
//
// ADDRESS: {"rank": the peer's, "gid", "staging", "key", "queue_pair", "channel"}.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/collective/rank/collective_data.h"
#include "tools/collective/rank/json_lines.h"
#include "tools/collective/rank/rank_link.h"

namespace paceline::rank {

struct SizeResult {
  std::uint32_t size = 0;  // index in --bytes
  double mean_us = 0;
  DataCheck data;
};

class Meeting {
 public:
  // Throws RankError, as all functions do: the parent is not there, has ended, or says nothing
  // within `patience`, seconds, which may be infinite.
  Meeting(const std::string& path, std::uint32_t rank, double patience);

  int descriptor() const { return lines_.descriptor(); }

  std::vector<LinkAddress> exchange(const std::vector<LinkAddress>& own);
  // Returns when the parent let all go.
  LinkTime wait_for_all();
  void report(const SizeResult& result);
  // Says nothing where the parent has ended.
  void report_failure(const std::string& what);

  // The next message of the parent: an object.
  nlohmann::json next();
  void send(const nlohmann::json& message);

 private:
  JsonLines lines_;
  double patience_;
  std::uint32_t waited_ = 0;
};

}  // namespace paceline::rank
