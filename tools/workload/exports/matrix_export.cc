#include "tools/workload/exports/matrix_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "dataplane/config/toml/quantity.h"

namespace paceline::workload {

namespace {

constexpr std::uint64_t kMostBytesOfHtsim = 0x7FFF'FFFF;

// The arrival or the completion of a flow: twice its message, plus 1 for the completion.
using FlowEnd = std::uint32_t;
using FlowEnds = std::vector<FlowEnd>;

class MatrixWriter {
 public:
  MatrixWriter(const MessagePlan& plan, std::uint32_t nodes, bool drop_waits)
      : plan_(plan),
        nodes_(nodes),
        drop_waits_(drop_waits),
        order_(plan),
        waits_of_(plan.messages.size()) {}

  config::Read<MatrixText> write() {
    for (const std::uint32_t id : order_.order()) {
      waits_of_[id] = set_of(id);
      if (!plan_.messages[id].computes) check(id);
    }
    if (errors_.empty()) find_triggers();
    if (errors_.empty()) find_connections();
    config::Read<MatrixText> out;
    out.errors = std::move(errors_);
    if (out.ok()) out.value = {text(), dropped_};
    return out;
  }

 private:
  // The messages that must have ended before this message begins. Joins and computing are replaced
  // by their own dependencies, and messages on which others in the set depend are left out.
  std::uint32_t set_of(std::uint32_t id) {
    const auto waits = order_.waits_of(id);
    if (waits.size() == 1 && plan_.messages[waits[0]].computes) return waits_of_[waits[0]];
    FlowEnds ends;
    for (const std::uint32_t after : waits) {
      const PlannedMessage& awaited = plan_.messages[after];
      if (awaited.computes) {
        const FlowEnds& set = sets_[waits_of_[after]];
        ends.insert(ends.end(), set.begin(), set.end());
      } else {
        ends.push_back(2 * after + (awaited.src == plan_.messages[id].src ? 1 : 0));
      }
    }
    std::sort(ends.begin(), ends.end());
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    FlowEnds implied;
    for (const FlowEnd end : ends) {
      const FlowEnds& set = sets_[waits_of_[end / 2]];
      implied.insert(implied.end(), set.begin(), set.end());
      if (end % 2 == 1) implied.push_back(end - 1);  // an acknowledged message has arrived
    }
    std::sort(implied.begin(), implied.end());
    FlowEnds kept;
    std::set_difference(ends.begin(), ends.end(), implied.begin(), implied.end(),
                        std::back_inserter(kept));
    return number_of(kept);
  }

  std::uint32_t number_of(const FlowEnds& set) {
    const auto [at, added] = numbers_.try_emplace(set, static_cast<std::uint32_t>(sets_.size()));
    if (added) sets_.push_back(set);
    return at->second;
  }

  void check(std::uint32_t id) {
    const PlannedMessage& m = plan_.messages[id];
    ++flows_;
    if (m.bytes == 0 || m.bytes > kMostBytesOfHtsim) {
      refuse(id, fmt::format("{} bytes: htsim reads 1 to {}", m.bytes, kMostBytesOfHtsim));
    }
    Picos implied{0};
    for (const FlowEnd end : sets_[waits_of_[id]]) implied = std::max(implied, start_of(end / 2));
    if (waits_of_[id] != 0 && start_of(id) > implied) {
      refuse(id, fmt::format("it waits and does not begin before {}: a flow of htsim has either a "
                             "trigger or a start",
                             config::format_time(start_of(id))));
    }
  }

  Picos start_of(std::uint32_t id) const {
    return std::max(plan_.messages[id].start, order_.awaited_start(id));
  }

  // Sets that messages wait for get triggers, and the flows in them the one that they fire.
  void find_triggers() {
    trigger_of_.resize(sets_.size());
    fires_.resize(2 * plan_.messages.size());
    std::map<std::uint32_t, std::uint32_t> rest_of;  // sets of which waits are dropped
    for (std::uint32_t id = 0; id < plan_.messages.size(); ++id) {
      std::uint32_t& set = waits_of_[id];
      if (plan_.messages[id].computes || set == 0) continue;
      if (trigger_of_[set] == 0) {
        const auto [rest, first] = rest_of.try_emplace(set, set);
        if (first) rest->second = free_part(id, set);
        dropped_ += sets_[set].size() - sets_[rest->second].size();
        set = rest->second;
      }
      if (trigger_of_[set] == 0) fire(set, id);
    }
  }

  // The part of a set that message `id` waits for that fires no other trigger.
  std::uint32_t free_part(std::uint32_t id, std::uint32_t set) {
    FlowEnds part;
    FlowEnd taken = 0;
    for (const FlowEnd end : sets_[set]) {
      if (fires_[end] == 0) {
        part.push_back(end);
      } else {
        taken = end;
      }
    }
    if (part.size() == sets_[set].size()) return set;
    if (!drop_waits_ || part.empty()) {
      refuse(taken / 2, fmt::format("{} and {} wait for it and for different other flows: a "
                                    "flow of htsim fires one trigger{}",
                                    message_text(plan_, first_waiting_[fires_[taken]]),
                                    message_text(plan_, id),
                                    drop_waits_ ? "" : "; --drop-waits keeps the first"));
    }
    const std::uint32_t number = number_of(part);
    trigger_of_.resize(sets_.size());
    return number;
  }

  void fire(std::uint32_t set, std::uint32_t id) {
    if (set == 0) return;  // after an error
    trigger_of_[set] = ++triggers_;
    first_waiting_[set] = id;
    for (const FlowEnd end : sets_[set]) fires_[end] = set;
  }

  void find_connections() {
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> lanes;
    connection_of_.resize(plan_.messages.size());
    messages_of_.push_back(0);
    for (std::uint32_t id = 0; id < plan_.messages.size(); ++id) {
      const PlannedMessage& m = plan_.messages[id];
      if (m.computes) continue;
      std::uint32_t connection = static_cast<std::uint32_t>(messages_of_.size());
      if (m.lane != kNoMessage) {
        connection = lanes.try_emplace({m.src, m.dst, m.lane}, connection).first->second;
      }
      if (connection == messages_of_.size()) messages_of_.push_back(0);
      ++messages_of_[connection];
      connection_of_[id] = connection;
    }
  }

  std::string text() const {
    std::string out =
        fmt::format("Nodes {}\nConnections {}\nTriggers {}\n", nodes_, flows_, triggers_);
    const auto to = std::back_inserter(out);
    for (std::uint32_t id = 0; id < plan_.messages.size(); ++id) {
      const PlannedMessage& m = plan_.messages[id];
      if (m.computes) continue;
      fmt::format_to(to, "{}->{} id {}", m.src, m.dst, connection_of_[id]);
      if (const std::uint32_t trigger = trigger_of_[waits_of_[id]]; trigger != 0) {
        fmt::format_to(to, " trigger {}", trigger);
      } else {
        fmt::format_to(to, " start {}", start_of(id).count);
      }
      fmt::format_to(to, " size {}", m.bytes);
      const std::uint32_t arrival = fires_[2 * id];
      const std::uint32_t completion = fires_[2 * id + 1];
      if (arrival != 0) fmt::format_to(to, " recv_done_trigger {}", trigger_of_[arrival]);
      if (completion != 0) fmt::format_to(to, " send_done_trigger {}", trigger_of_[completion]);
      out += messages_of_[connection_of_[id]] > 1 ? " msg\n" : "\n";
    }
    std::vector<std::size_t> counts(triggers_ + 1);
    for (std::size_t set = 0; set < sets_.size(); ++set) {
      counts[trigger_of_[set]] = sets_[set].size();
    }
    for (std::uint32_t trigger = 1; trigger <= triggers_; ++trigger) {
      if (counts[trigger] == 1) {
        fmt::format_to(to, "trigger id {} oneshot\n", trigger);
      } else {
        fmt::format_to(to, "trigger id {} barrier count {}\n", trigger, counts[trigger]);
      }
    }
    return out;
  }

  void refuse(std::uint32_t id, const std::string& what) {
    constexpr std::size_t kMostErrors = 5;
    if (errors_.size() < kMostErrors) {
      errors_.push_back(fmt::format("{}: {}", message_text(plan_, id), what));
    }
  }

  const MessagePlan& plan_;
  std::uint32_t nodes_;
  bool drop_waits_;
  PlanOrder order_;
  std::vector<std::string> errors_;
  std::uint32_t flows_ = 0;
  std::uint32_t triggers_ = 0;
  std::uint64_t dropped_ = 0;                             // waits
  std::vector<FlowEnds> sets_{{}};                        // 0: the empty one
  std::map<FlowEnds, std::uint32_t> numbers_{{{}, 0}};    // of sets
  std::vector<std::uint32_t> waits_of_;                   // set, by message
  std::vector<std::uint32_t> trigger_of_;                 // by set; 0: none
  std::vector<std::uint32_t> fires_;                      // set, by FlowEnd
  std::map<std::uint32_t, std::uint32_t> first_waiting_;  // message, by set
  std::vector<std::uint32_t> connection_of_;              // by message
  std::vector<std::uint32_t> messages_of_;                // how many, by connection
};

}  // namespace

config::Read<MatrixText> write_htsim_plan(const MessagePlan& plan, std::uint32_t nodes,
                                          const PlanDrops& drops) {
  if (!drops.computing) {
    if (auto errors = check_computing(plan, "htsim"); !errors.empty()) return {{}, errors};
  }
  return MatrixWriter(plan, nodes, drops.waits).write();
}

}  // namespace paceline::workload
