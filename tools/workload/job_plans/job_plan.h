// Turns a job into what its hosts do: collectives become the messages of their schedules, cut into
// parts that follow one another as closely as a window allows.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dataplane/config/toml/diagnostics.h"
#include "dataplane/driver/traffic/message_plan.h"
#include "tools/workload/jobs/issue_order.h"
#include "tools/workload/jobs/job.h"
#include "tools/workload/schedules/schedule.h"

namespace paceline::workload {

// How collectives are run. `algorithms` is by CollectiveOp; "": the default one of the operation.
struct CollectiveSettings {
  std::array<std::string, kCollectiveOps> algorithms;
  std::uint64_t chunk_bytes = 1 << 20;  // the largest message of a collective
  std::uint32_t channels = 1;  // parts are dealt out to so many, each with queue pairs of its own
  std::uint32_t window = 8;    // parts of a channel that a rank has in flight
  std::uint32_t queue_pairs = 1;  // per pair of ranks and channel; messages take turns
  bool clear_to_send = false;  // a receiver tells the sender that it is ready, message by message
  Picos step_overhead{0};  // from the end of what a message waits for to its start; 0: no in_turn
  std::uint32_t aggregation = 0;     // ScheduleOptions
  std::uint32_t peers = 0;           // ScheduleOptions::window
  double skew = 0;                   // of all-to-alls: ReceiverWeights; 0: even
  std::uint64_t seed = 0;            // of their draws
  const Schedule* custom = nullptr;  // for collectives of its operation and ranks
};

// Messages between ranks; PlannedMessage::collective is the index of the call.
struct JobPlan {
  // When an op runs: from the end of message `begin` to the end of message `end`, both of its rank.
  // A compute op or a send is a single message: it runs from the beginning of `end`.
  struct Span {
    std::uint32_t begin = kNoMessage;
    std::uint32_t end = kNoMessage;
  };
  struct Call {
    CollectiveOp op = CollectiveOp::all_reduce;
    std::uint32_t ranks = 0;
    std::uint64_t bytes = 0;
    std::vector<std::uint32_t> ops;  // of the job, by position of the rank in the group
  };
  MessagePlan plan;
  std::vector<Span> spans;  // by op
  std::vector<Call> calls;  // as in plan.collectives
};

// The pairs of messages that wait for each other, as issue_order() and find_circle() take them.
std::vector<OpPair> waits_of(const MessagePlan& plan);

// servers: the server of each rank; ranks of one server use no clear-to-send. Errors: those of
// collective_calls; a send that nobody receives, or the reverse; sizes that differ; those of
// make_schedule; a custom schedule that serves no collective; an uneven all-to-all with a schedule
// that is not direct; a job that cannot end (names the ranks that wait for one another); more than
// `most` messages.
config::Read<JobPlan> plan_job(const Job& job, std::span<const std::uint32_t> servers,
                               const CollectiveSettings& settings, std::uint64_t most);

// The shape of a group of ranks, given the server of each rank. If every server has the same number
// of ranks, one server after the other, they form servers; otherwise each rank counts as a server.
GroupShape group_shape(std::span<const std::uint32_t> servers);

// Into how many parts a collective is cut.
std::uint64_t parts_of(const Schedule& schedule, std::uint64_t bytes, std::uint64_t chunk_bytes);

}  // namespace paceline::workload
