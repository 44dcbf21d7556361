// A job as a graph: what each rank computes, sends and receives, in which collectives it takes
// part, and in which order. Importers make it from other tools' files, job_plans/ makes messages
// from it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/base/units.h"
#include "tools/workload/schedules/schedule.h"

namespace paceline::workload {

enum class JobOpKind : std::uint8_t { compute, send, receive, collective };

inline constexpr std::uint32_t kAnyRank = 0xFFFF'FFFF;  // JobOp::peer of a receive
inline constexpr std::uint32_t kAnyTag = 0xFFFF'FFFF;   // JobOp::tag of a receive
inline constexpr std::uint32_t kNoName = 0xFFFF'FFFF;

// An operation of one rank. It begins when all that it waits for has ended.
struct JobOp {
  JobOpKind kind = JobOpKind::compute;
  std::uint32_t rank = 0;
  std::uint32_t peer = 0;   // send: to whom; receive: from whom
  std::uint32_t tag = 0;    // send, receive: matched by (source, tag), in the order of the ops
  std::uint32_t group = 0;  // collective: in Job::groups
  CollectiveOp op = CollectiveOp::all_reduce;  // collective
  std::uint64_t bytes = 0;  // send, receive: of the message; collective: of a rank's whole buffer
  // all_to_all, where it is uneven: the draw of the receivers' weights, and whether it takes back
  // what another call of that draw sent.
  std::uint64_t draw = 0;
  bool transposed = false;
  Picos duration{0};             // compute
  Picos start{0};                // it does not begin before this time
  std::uint32_t name = kNoName;  // in Job::names
  std::uint32_t line = 0;        // of the file it comes from; 0: unknown
};

// A request to a service, whose answer begins when some receives have ended: in Job::ops, one after
// the other.
struct JobRequest {
  Picos arrival{0};
  std::uint32_t first_receive = 0;
  std::uint32_t receives = 0;
};

struct Job {
  std::uint32_t ranks = 0;
  // The ops of a rank are in the order in which it would issue them: the k-th op of a rank on a
  // group belongs to the k-th of every other rank there.
  std::vector<JobOp> ops;
  // (an op, an op of the same rank that must have ended before it begins), sorted, each once.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> waits;
  std::vector<std::vector<std::uint32_t>> groups;  // ranks of each, in the group's order
  std::vector<std::string> names;
  std::vector<JobRequest> requests;
};

}  // namespace paceline::workload
