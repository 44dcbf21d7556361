#include "tools/workload/placement.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "tools/workload/draws/streams.h"
#include "tools/workload/files/text_table.h"

namespace paceline::workload {

namespace {

constexpr std::size_t kLongestPlacement = 64 << 20;
constexpr std::uint32_t kUnplaced = 0xFFFF'FFFF;

class PlacementParser {
 public:
  PlacementParser(std::string_view text, const std::string& source,
                  const config::ServerShape& shape)
      : table_(text, source),
        shape_(shape),
        nic_of_(shape.all_nics(), kUnplaced),
        rank_of_(shape.all_nics(), kUnplaced) {}

  config::Read<Placement> parse() {
    TextLine line;
    while (!errors_.full() && table_.next(line)) {
      if (line.words.size() == 3) {
        place(line);
      } else {
        errors_.add(table_.where(line.words.front()),
                    fmt::format("{} columns: expected 3, `rank server nic`", line.words.size()));
      }
    }
    if (errors_.empty()) find_missing();
    return {std::move(nic_of_), errors_.list()};
  }

 private:
  void place(const TextLine& line) {
    std::uint64_t numbers[3] = {};
    const std::pair<std::string_view, std::uint32_t> columns[3] = {
        {"rank", shape_.all_nics()}, {"server", shape_.servers}, {"nic", shape_.nics}};
    bool good = true;
    for (std::size_t i = 0; i < 3; ++i) {
      const auto& [name, count] = columns[i];
      good = read_integer(table_, line.words[i], name, 0, count - 1, numbers[i], errors_) && good;
    }
    if (!good) return;
    const auto rank = static_cast<std::uint32_t>(numbers[0]);
    const std::uint32_t nic = shape_.nic_number(static_cast<std::uint32_t>(numbers[1]),
                                                static_cast<std::uint32_t>(numbers[2]));
    if (nic_of_[rank] != kUnplaced) {
      errors_.add(table_.where(line.words[0]),
                  fmt::format("rank = {}: has a NIC already; each rank stands on one line", rank));
    } else if (rank_of_[nic] != kUnplaced) {
      errors_.add(table_.where(line.words[1]),
                  fmt::format("server {} nic {}: rank {} has it already; each NIC has one rank",
                              numbers[1], numbers[2], rank_of_[nic]));
    } else {
      nic_of_[rank] = nic;
      rank_of_[nic] = rank;
    }
  }

  void find_missing() {
    for (std::uint32_t rank = 0; rank < nic_of_.size(); ++rank) {
      if (nic_of_[rank] != kUnplaced) continue;
      errors_.add(table_.end(),
                  fmt::format("rank {} is missing: expected a line for each rank, 0 .. {}", rank,
                              nic_of_.size() - 1));
      return;
    }
  }

  TextTable table_;
  config::ServerShape shape_;
  Placement nic_of_;
  std::vector<std::uint32_t> rank_of_;
  TableErrors errors_;
};

}  // namespace

Placement place_ranks(std::string_view rule, const config::ServerShape& shape, std::uint64_t seed) {
  Placement nics(shape.all_nics());
  std::iota(nics.begin(), nics.end(), 0U);
  if (rule == "packed") {
    for (std::uint32_t rank = 0; rank < nics.size(); ++rank) {
      nics[rank] = shape.nic_number(rank / shape.nics, rank % shape.nics);
    }
  } else if (rule == "random") {
    Random random = stream(seed, Purpose::placement, 0);
    for (std::size_t left = nics.size(); left > 1; --left) {
      std::swap(nics[left - 1], nics[random.below(left)]);
    }
  }
  return nics;  // spread: NICs are numbered so
}

config::Read<Placement> parse_placement(std::string_view text, const std::string& source,
                                        const config::ServerShape& shape) {
  return PlacementParser(text, source, shape).parse();
}

config::Read<Placement> read_placement_file(const std::string& path,
                                            const config::ServerShape& shape) {
  const config::Read<std::string> text = read_table_file(path, kLongestPlacement);
  if (!text.ok()) return {{}, text.errors};
  return parse_placement(text.value, path, shape);
}

void put_on_nics(MessagePlan& plan, const Placement& placement) {
  for (PlannedMessage& m : plan.messages) {
    m.src = placement[m.src];
    m.dst = placement[m.dst];
  }
}

void relay_along_rails(MessagePlan& plan, const config::ServerShape& shape) {
  std::vector<PlannedMessage> parts;
  std::vector<std::uint32_t> arrives_as(plan.messages.size());
  for (std::size_t id = 0; id < plan.messages.size(); ++id) {
    PlannedMessage m = plan.messages[id];
    const bool fabric = !shape.same_server(m.src, m.dst);
    if (fabric) m.lane = 0;
    if (fabric && shape.rail_of(m.src) != shape.rail_of(m.dst)) {
      PlannedMessage first = m;
      first.dst = shape.nic_number(shape.server_of(m.src), shape.rail_of(m.dst));
      m.src = first.dst;
      m.after = static_cast<std::uint32_t>(parts.size());
      m.gap = Picos{0};
      m.relays = true;
      parts.push_back(first);
    }
    arrives_as[id] = static_cast<std::uint32_t>(parts.size());
    parts.push_back(m);
  }
  for (PlannedMessage& part : parts) {
    if (!part.relays && part.after != kNoMessage) part.after = arrives_as[part.after];
  }
  plan.messages = std::move(parts);
}

}  // namespace paceline::workload
