// Runs the parts of a world in windows of time no longer than the lookahead, so that what one part
// does within a window is felt in another after it; packets that cross are handed over between
// windows. Each part has a thread; a single one is this thread's. Conservative: the result is that
// of working off event after event. What cannot be done within a part (connections, the end of the
// run), and windows in which too little happens, one thread works off for all parts, in the order
// of (time, actor). docs/architecture.md, "Parallel virtual time".
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/base/units.h"
#include "dataplane/driver/traffic/message_plan.h"
#include "dataplane/driver/virtual/spin_barrier.h"
#include "dataplane/driver/virtual/world_part.h"
#include "dataplane/fabric/topology/division.h"

namespace paceline {

// How the work was shared: for a report of speed, never for a result.
struct ThreadUse {
  double cpu_seconds = 0;      // of the thread, waiting included
  double waiting_seconds = 0;  // for the others, by the clock
  std::uint64_t events = 0;
};
struct ParallelUse {
  std::vector<ThreadUse> threads;  // empty: the run was one thread's
  std::uint64_t windows = 0;
  std::uint64_t windows_alone = 0;  // that one thread worked off
  std::uint64_t events_alone = 0;   // in these
};

class ParallelRun {
 public:
  enum class End : std::uint8_t {
    completed,
    duration,
    stalled,
    stopped,
    // An event that only one thread may handle has happened while several ran: the world must be
    // rebuilt and run by one thread.
    misjudged,
  };
  // Thrown out of a part by what may only happen while one thread works off all parts, and under a
  // number that is one part's.
  struct NotAlone {};

  struct Options {
    Picos duration = kNever;
    const std::atomic<bool>* stop = nullptr;
    std::function<void(double)> progress;
    Picos nvlink_latency{0};
    bool sweep = false;  // parts work off their windows node by node (WorldPart::sweep)
    // For a single part: called every sample_interval, once everything before has happened.
    Picos sample_interval = kNever;
    std::function<void(Picos)> sample;
  };

  // Everything must outlive the run. The parts have not begun, and do not send yet.
  ParallelRun(std::vector<std::unique_ptr<WorldPart>>& parts, const fabric::FabricSpec& spec,
              const fabric::Division& division, Slab<WorldHost>& hosts, const MessagePlan& plan,
              Options options);

  // Why this plan cannot be run so; empty: it can.
  static std::string obstacle(const MessagePlan& plan, Picos nvlink_latency);

  // Polls every host once, then runs. Rethrows what a part throws.
  End run();

  // Whether the event in progress at this host may touch others: one thread works off all parts,
  // and the order of its connections is that of one world.
  bool may_connect(std::uint32_t host) const {
    const std::uint32_t part = division_.part_of_node[host];
    return shares_[part].alone && !parts_[part]->in_shared_event();
  }
  // A message over NVLink for which another one waits will arrive; called by its sender's thread.
  void carry(Picos at, std::uint32_t message);
  const ParallelUse& use() const { return use_; }

 private:
  // State that a part publishes at the end of a window.
  struct Report {
    // The earliest of its next event, that of a part it has sent to, and what it will send next.
    Picos next = kNever;
    std::uint64_t finished = 0;
    std::uint64_t bytes_done = 0;
    std::uint64_t events = 0;
    bool unsent = false;   // a host has bytes to send that were never sent: it cannot be done soon
    bool failed = false;   // has thrown
    bool stop = false;     // from outside
    bool is_over = false;  // all messages are done, in a window of one thread
  };
  // A message over NVLink to a host of another part.
  struct Carried {
    Picos at{0};
    std::uint32_t message = 0;
  };
  struct alignas(128) Share {
    // For odd and even windows, by part.
    std::array<std::vector<std::vector<fabric::Crossing>>, 2> away;
    std::array<std::vector<std::vector<Carried>>, 2> nvlink;
    std::size_t parity = 0;  // which of them are being filled
    std::array<Report, 2> reports;
    bool alone = true;
    std::vector<std::uint32_t> hosts;
    std::size_t witness = 0;  // hosts before it have sent everything once
    std::exception_ptr problem;
    ThreadUse use;
  };
  // How far a thread has come, and how fast time passes: the same on every thread.
  struct Place {
    std::size_t connection = 0;  // of connections_: earlier ones are over
    Picos pace{0};               // time per event, lately
    std::uint64_t events = 0;    // when it was last found out
    Picos time{0};
  };
  struct Window {
    Picos begin{0};
    Picos end{0};
    bool alone = false;
    bool over = false;
    End how = End::completed;
  };

  Window decide(std::uint64_t window, Place& place) const;
  void work(std::uint32_t index);
  void run_window(std::uint32_t part, std::uint64_t window, const Window& of);
  void run_alone(std::uint64_t window, Picos end);
  Picos work_single(Picos end, bool& over);
  void sample_until_next_event();
  void take_in(std::uint32_t part, std::uint64_t window);
  void open_lists(std::uint32_t part, std::uint64_t window);
  void report(std::uint32_t part, std::uint64_t window, Picos end, Picos leaving = kNever);
  bool has_unsent(Share& share);

  std::vector<std::unique_ptr<WorldPart>>& parts_;
  Slab<WorldHost>& hosts_;
  const MessagePlan& plan_;
  const fabric::Division& division_;
  Options options_;
  Picos lookahead_;
  std::vector<Picos> connections_;      // times at which hosts may connect, ascending
  std::vector<std::uint64_t> to_send_;  // bytes, by host
  std::uint64_t bytes_total_ = 0;
  bool carries_ = false;  // messages over NVLink
  std::vector<Share> shares_;
  SpinBarrier barrier_;
  Picos next_sample_ = kNever;
  End end_ = End::completed;
  ParallelUse use_;
};

}  // namespace paceline
