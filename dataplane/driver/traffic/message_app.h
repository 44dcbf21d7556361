// The application of one emulated host: posts what the plan says when it is due, waits for the
// messages that others depend on, computes, and records completions. Hosts exchange packets only,
// so the id of a message that a host waits for travels as immediate data.
#pragma once

#include <cstdint>
#include <memory>
#include <queue>
#include <span>
#include <unordered_map>
#include <vector>

#include "dataplane/base/units.h"
#include "dataplane/driver/traffic/message_plan.h"
#include "dataplane/driver/traffic/plan_index.h"
#include "dataplane/driver/traffic/sender_limits.h"
#include "dataplane/transport/engine.h"

namespace paceline {

// Result of one message. Times are absolute.
struct MessageRecord {
  Picos ready{-1};          // its start time had come and its dependencies had arrived
  Picos completed{-1};      // last acknowledgement at the sender, or the end of computing
  std::uint32_t waits = 0;  // for that many others, until it is ready
  bool failed = false;
};

// A record for every message, before anything has happened.
std::vector<MessageRecord> fresh_records(const MessagePlan& plan);

// Operations that involve two hosts; implemented by the world, which sees both.
class Connector {
 public:
  Connector() = default;
  Connector(const Connector&) = delete;
  Connector& operator=(const Connector&) = delete;
  virtual ~Connector() = default;
  // A queue pair for this message and others like it. Returns its number at the sender.
  virtual std::uint32_t connect(Picos now, const PlannedMessage& message) = 0;
  // Carries a message of the plan over NVLink. Returns its time of arrival; the application there
  // is told of it if it waits for the message (MessageApp::will_arrive).
  virtual Picos carry(Picos now, std::uint32_t message) = 0;
};

class alignas(64) MessageApp {
 public:
  // `records` has one entry per message of the plan, shared by the apps of all hosts; each writes
  // only its own messages'. The app posts nothing before the first poll.
  // `index` is of the plan. Both must outlive the app, and so must `memory`: where the bytes of its
  // messages are, nullptr where only their lengths move.
  MessageApp(std::uint32_t host, const MessagePlan& plan, const PlanIndex& index,
             std::vector<MessageRecord>& records, transport::Engine& engine, Connector& connector,
             transport::MemoryProvider* memory = nullptr);

  // The queue objects that queue pairs of this host use.
  transport::CompletionQueue& completions() { return completions_; }
  transport::ReceiveQueue& receives() { return receives_; }

  // Connects the queue pair that the message will use, unless it is. Returns its lane.
  std::uint32_t open(Picos now, const PlannedMessage& message);

  // Posts what is due and takes completions; true when it posted something (the engine must run).
  bool poll(Picos now);
  Picos next_deadline() const { return next_start_; }
  // Message `id` from another NIC of this server arrives at `at`, which is to come.
  void will_arrive(Picos at, std::uint32_t id) {
    due_.push({at, id});
    find_next_start();
  }
  bool due(Picos now) const { return next_start_ <= now || !completions_.empty(); }

  // How many messages and computations this host has; how many of them are done, including failed
  // ones.
  std::uint64_t finished() const { return finished_; }
  std::uint64_t planned() const { return planned_; }
  // What limited its messages; nullptr if not recorded (MessagePlan::limits).
  const SenderLimits* limits() const { return limits_.get(); }
  // Ids in the order of completion since the last call.
  std::vector<std::uint32_t>& newly_finished() { return newly_finished_; }

  // Region keys are the same on every host: one region for everything.
  static constexpr std::uint64_t kRegionBytes = std::uint64_t{1} << 62;

 private:
  struct Lane {
    std::uint32_t qp = 0;
    std::uint32_t outstanding = 0;       // work requests posted and not completed
    std::uint32_t message = kNoMessage;  // being posted piece by piece
    std::uint64_t posted = 0;            // bytes of it
    std::queue<std::uint32_t> waiting;
    bool busy = false;  // pooled lanes: a message is on it
  };
  struct Due {
    Picos at{0};
    std::uint32_t message = 0;
    friend bool operator>(const Due& a, const Due& b) {
      return a.at != b.at ? a.at > b.at : a.message > b.message;
    }
  };

  void start(Picos now, std::uint32_t id);
  bool feed(Picos now, std::uint32_t index);
  void finish(Picos now, std::uint32_t id, bool failed);
  void release(Picos now, std::uint32_t id);
  void take_completions(Picos now);
  void replenish();
  void find_next_start();

  // Read by the driver after every poll of the host; on one cache line.
  Picos next_start_ = kNever;  // earliest of own_ and due_
  std::vector<std::uint32_t> newly_finished_;
  transport::CompletionQueue completions_;

  std::uint32_t host_;
  const MessagePlan& plan_;
  std::vector<MessageRecord>& records_;
  transport::Engine& engine_;
  Connector& connector_;
  transport::ReceiveQueue receives_;
  std::uint32_t region_ = 0;

  std::span<const std::uint32_t> own_;  // messages this host sends, by (start, id)
  std::size_t next_own_ = 0;            // first of own_ without dependency not yet due
  // Released dependants, messages over NVLink, sent and awaited, until they have arrived, and ends
  // of computing.
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  // Message -> messages of this host that wait for it, both ascending.
  std::span<const PlanIndex::Dependant> dependants_;
  std::vector<Lane> lanes_;
  std::unordered_map<std::uint64_t, std::uint32_t> lane_index_;  // (dst, lane); never iterated
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> pools_;  // dst -> lanes; likewise
  std::unordered_map<std::uint32_t, std::uint32_t> lane_of_qp_;          // likewise
  std::uint32_t receives_posted_ = 0;
  std::uint32_t receives_wanted_ = 0;
  std::uint64_t finished_ = 0;
  std::uint64_t planned_ = 0;
  bool posted_ = false;
  std::unique_ptr<SenderLimits> limits_;
};

}  // namespace paceline
