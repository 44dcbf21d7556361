#include "tools/job/verbs/plan_results.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "tools/cli/cli.h"

namespace paceline::tools {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostWaits = 16;  // lines

}  // namespace

PlanResults::PlanResults(std::vector<rank::PlanPart> parts, std::size_t messages, PlanNames names,
                         double patience)
    : parts_(std::move(parts)),
      ranks_(parts_.size()),
      names_(std::move(names)),
      patience_(patience),
      last_progress_(wall_seconds()),
      records_(messages),
      causes_(messages, kNoMessage) {
  for (std::size_t r = 0; r < parts_.size(); ++r) {
    ranks_[r].planned = parts_[r].sends.size();
    ranks_[r].events = ranks_[r].planned + parts_[r].arrivals.size();
  }
}

void PlanResults::greet(std::uint32_t rank, rank::JsonLines& lines) {
  const auto whole = static_cast<time_t>(patience_);
  const timeval limit{whole,
                      static_cast<suseconds_t>((patience_ - static_cast<double>(whole)) * 1e6)};
  ::setsockopt(lines.descriptor(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  for (const Json& line : part_lines(parts_[rank])) {
    if (lines.send(line)) continue;
    deaf_.push_back(fmt::format("{} has not taken its part of the plan", names_.rank(rank)));
    break;
  }
  parts_[rank] = {};
  last_progress_ = wall_seconds();
}

void PlanResults::take(std::uint32_t nic, const Json& message) {
  Rank& rank = ranks_[nic];
  if (message.contains("finished")) {
    take_progress(rank, nic, message);
    return;
  }
  last_progress_ = wall_seconds();
  if (message.contains("records")) {
    take_records(rank, message.at("records"));
  } else {
    take_totals(rank, nic, message.at("totals"));
  }
}

void PlanResults::take_progress(Rank& rank, std::uint32_t nic, const Json& message) {
  const auto finished = message.at("finished").get<std::uint64_t>();
  const bool later = message.at("later").get<bool>();
  if (finished != rank.finished || later) last_progress_ = wall_seconds();
  rank.finished = finished;
  rank.waits.reset();
  if (!message.contains("waits_for")) return;
  const std::string what = names_.message(message.at("waits_for").get<std::uint32_t>());
  rank.waits =
      fmt::format("{} waits for {}{}", names_.rank(nic),
                  message.at("arrival").get<bool>() ? "" : "the acknowledgement of ", what);
}

void PlanResults::take_records(Rank& rank, const Json& rows) {
  for (const Json& row : rows) {
    const auto id = row.at(0).get<std::uint32_t>();
    MessageRecord& record = records_.at(id);
    record.ready.count = row.at(1).get<std::int64_t>();
    record.completed.count = row.at(2).get<std::int64_t>();
    causes_[id] = row.at(3).get<std::uint32_t>();
    ++rank.recorded;
  }
}

void PlanResults::take_totals(Rank& rank, std::uint32_t nic, const Json& totals) {
  rank.told_totals = true;
  rank.finished = rank.events;
  rank.waits.reset();
  totals_.messages += totals.at("received").get<std::uint64_t>();
  totals_.bytes += totals.at("received_bytes").get<std::uint64_t>();
  const auto wrong = totals.at("wrong_messages").get<std::uint64_t>();
  if (wrong == 0) return;
  const auto bytes = totals.at("wrong_bytes").get<std::uint64_t>();
  totals_.wrong_messages += wrong;
  totals_.wrong_bytes += bytes;
  wrong_.push_back(fmt::format(
      "{}: {} messages have arrived with {} wrong bytes; the first is byte {} of {}: expected "
      "0x{:02x}, got 0x{:02x}",
      names_.rank(nic), wrong, bytes, totals.at("first_byte").get<std::uint64_t>(),
      names_.message(totals.at("wrong_message").get<std::uint32_t>()),
      totals.at("expected").get<unsigned>(), totals.at("got").get<unsigned>()));
}

bool PlanResults::complete(std::uint32_t rank) const {
  return ranks_[rank].told_totals && ranks_[rank].recorded == ranks_[rank].planned;
}

std::vector<std::string> PlanResults::waits() const {
  std::vector<std::string> lines;
  std::size_t more = 0;
  for (const Rank& rank : ranks_) {
    if (!rank.waits) continue;
    if (lines.size() < kMostWaits) {
      lines.push_back(*rank.waits);
    } else {
      ++more;
    }
  }
  if (more != 0) lines.push_back(fmt::format("{} other ranks wait as well", more));
  return lines;
}

std::vector<std::string> PlanResults::obstacles() {
  if (!deaf_.empty()) return deaf_;
  if (wall_seconds() - last_progress_ < patience_) return {};
  stalled_ = true;
  std::vector<std::string> lines{fmt::format("no message has moved for {:g} s", patience_)};
  const std::vector<std::string> reasons = waits();
  lines.insert(lines.end(), reasons.begin(), reasons.end());
  return lines;
}

double PlanResults::share_done() const {
  std::uint64_t done = 0;
  std::uint64_t all = 0;
  for (const Rank& rank : ranks_) {
    done += rank.finished;
    all += rank.events;
  }
  return all == 0 ? 1 : static_cast<double>(done) / static_cast<double>(all);
}

}  // namespace paceline::tools
