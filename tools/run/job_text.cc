#include "tools/run/job_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "dataplane/config/toml/quantity.h"

namespace paceline::tools {

namespace {

using workload::Job;
using workload::JobOp;
using workload::JobOpKind;

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostKinds = 12;  // in the text
// Rows of a rank in the trace: computing, then communication, each on the first row that is free.
constexpr std::uint32_t kComputeRow = 0;

double trace_micros(Picos time) { return static_cast<double>(time.count) / 1e6; }
double share_of(Picos part, Picos whole) {
  return whole.count <= 0
             ? 0
             : 100 * static_cast<double>(part.count) / static_cast<double>(whole.count);
}

std::string straggler_text(const Straggler& s) {
  if (s.kind == Straggler::Kind::rank) {
    return fmt::format(
        "straggler  rank {} computes {:.2f} times as long as the median rank; {:.0f} % of the "
        "collectives wait for it\n",
        s.number, s.computing, 100 * s.waited_by);
  }
  const std::string other = s.or_else == Straggler::kNobody
                                ? std::string()
                                : fmt::format(", or NIC {}, or the way between them", s.or_else);
  return fmt::format(
      "slow NIC   NIC {}{}: what it sends takes {:.1f} times, what it receives {:.1f} times as "
      "long "
      "as at the median NIC\n",
      s.number, other, s.pace.sent, s.pace.received);
}

// The largest first, at most `most` of them.
std::string shares_text(const LimiterShares& shares, std::size_t most) {
  std::vector<unsigned> order;
  for (unsigned i = 0; i < cc::kLimiters; ++i) {
    if (shares[i] >= 0.0005) order.push_back(i);
  }
  std::ranges::stable_sort(order, [&](unsigned a, unsigned b) { return shares[a] > shares[b]; });
  std::string text;
  for (std::size_t i = 0; i < std::min(most, order.size()); ++i) {
    text += fmt::format("{}{} {:.1f} %", i == 0 ? "" : ", ", cc::kLimiterNames[order[i]],
                        100 * shares[order[i]]);
  }
  return text;
}

std::string limiter_text(const JobReport& report) {
  if (!report.limited) return {};
  const std::string shares = shares_text(*report.limited, cc::kLimiters);
  return shares.empty() ? shares : fmt::format("senders    held back by: {}\n", shares);
}

std::string limited_column(const CollectiveKind& kind) {
  return kind.limited ? fmt::format("  {}", shares_text(*kind.limited, 2)) : "";
}

Json limited_json(const LimiterShares& shares) {
  Json json = Json::object();
  for (unsigned i = 0; i < cc::kLimiters; ++i) {
    if (static_cast<cc::Limiter>(i) != cc::Limiter::application)
      json[cc::kLimiterNames[i]] = shares[i];
  }
  return json;
}

std::string name_of_kind(const CollectiveKind& kind) {
  const std::string_view op = to_string(kind.call.op);
  return kind.name == op ? kind.name : fmt::format("{} ({})", kind.name, op);
}

struct RankSums {
  Picos computing{0};
  Picos waiting{0};
  Picos communicating{0};
  Picos idle{0};
};

RankSums sums_of(const JobReport& report) {
  RankSums sums;
  for (const RankTime& rank : report.ranks) {
    sums.computing += rank.computing;
    sums.waiting += rank.waiting;
    sums.communicating += rank.communicating;
    sums.idle += rank.idle;
  }
  return sums;
}

std::string name_of_op(const Job& job, const JobOp& op) {
  if (op.name != workload::kNoName) return job.names[op.name];
  switch (op.kind) {
    case JobOpKind::compute:
      return "compute";
    case JobOpKind::send:
      return fmt::format("send to {}", op.peer);
    case JobOpKind::receive:
      return "receive";
    case JobOpKind::collective:
      return std::string(to_string(op.op));
  }
  return {};
}

}  // namespace

std::string job_text(const JobReport& report) {
  if (report.took.count < 0) return {};
  const RankSums sums = sums_of(report);
  const Picos all = report.took * static_cast<std::int64_t>(report.ranks.size());
  std::string text = fmt::format(
      "job        {} ranks, {:.3f} us: computing {:.1f} %, communicating {:.1f} %, waiting for "
      "other ranks {:.1f} %, idle {:.1f} %\n",
      report.ranks.size(), trace_micros(report.took), share_of(sums.computing, all),
      share_of(sums.communicating, all), share_of(sums.waiting, all), share_of(sums.idle, all));
  const CriticalPath& path = report.path;
  text += fmt::format(
      "critical   path of {} steps: computing {:.1f} %, fabric {:.1f} %, NVLink {:.1f} %\n",
      path.steps.size(), share_of(path.computing, report.took), share_of(path.network, report.took),
      share_of(path.nvlink, report.took));
  text += limiter_text(report);
  if (report.background.bytes != 0) {
    text += fmt::format("background {} of storage traffic in {:.3f} us\n",
                        config::format_bytes(report.background.bytes),
                        trace_micros(report.background.took));
  }
  if (report.first_tokens.requests != 0) {
    const FirstTokens& first = report.first_tokens;
    text += fmt::format(
        "requests   {}, to the first token: mean {:.3f} us, p50 {:.3f} us, p99 {:.3f} us\n",
        first.requests, first.mean_us, first.p50_us, first.p99_us);
  }
  for (const Straggler& one : report.stragglers) text += straggler_text(one);
  if (report.kinds.empty()) return text;
  const std::size_t shown = std::min(report.kinds.size(), kMostKinds);
  std::vector<std::string> names{"collective"};
  for (std::size_t i = 0; i < shown; ++i) names.push_back(name_of_kind(report.kinds[i]));
  std::size_t width = 0;
  for (const std::string& name : names) width = std::max(width, name.size());
  const bool ideals = report.kinds.front().ideal_us.has_value();
  text += fmt::format("\n{:<{}} {:>6} {:>5} {:>10}{} {:>11} {:>11} {:>9}{}\n", names[0], width,
                      "calls", "ranks", "size", ideals ? fmt::format(" {:>11}", "ideal us") : "",
                      "took us", "waited us", "GB/s bus",
                      report.kinds.front().limited ? "  senders held back by" : "");
  for (std::size_t i = 0; i < shown; ++i) {
    const CollectiveKind& kind = report.kinds[i];
    const std::string ideal = ideals ? fmt::format(" {:>11.2f}", *kind.ideal_us) : "";
    text +=
        fmt::format("{:<{}} {:>6} {:>5} {:>10}{} {:>11.2f} {:>11.2f} {:>9.2f}{}\n", names[i + 1],
                    width, kind.calls, kind.call.ranks, config::format_bytes(kind.call.bytes),
                    ideal, kind.took_us, kind.waited_us, kind.bus_gbytes, limited_column(kind));
  }
  if (report.kinds.size() > kMostKinds) {
    text += fmt::format("and {} others, which took less\n", report.kinds.size() - kMostKinds);
  }
  return text + "\n";
}

nlohmann::ordered_json job_json(const JobReport& report) {
  Json json;
  json["took_ps"] = report.took.count < 0 ? Json(nullptr) : Json(report.took.count);
  json["ranks"] = Json::array();
  for (const RankTime& rank : report.ranks) {
    json["ranks"].push_back({{"computing_ps", rank.computing.count},
                             {"communicating_ps", rank.communicating.count},
                             {"waiting_ps", rank.waiting.count},
                             {"idle_ps", rank.idle.count}});
  }
  json["collectives"] = Json::array();
  for (const CollectiveKind& kind : report.kinds) {
    Json& out = json["collectives"].emplace_back();
    out["name"] = kind.name;
    out["operation"] = to_string(kind.call.op);
    out["bytes"] = kind.call.bytes;
    out["ranks"] = kind.call.ops.size();
    out["calls"] = kind.calls;
    if (kind.ideal_us) out["ideal_us"] = *kind.ideal_us;
    out["took_us"] = kind.took_us;
    out["waited_us"] = kind.waited_us;
    out["busbw_gbytes"] = kind.bus_gbytes;
    if (kind.limited) out["limited"] = limited_json(*kind.limited);
  }
  json["critical_path"] = {{"steps", report.path.steps.size()},
                           {"computing_ps", report.path.computing.count},
                           {"network_ps", report.path.network.count},
                           {"nvlink_ps", report.path.nvlink.count}};
  if (report.background.bytes != 0) {
    json["background"] = {{"bytes", report.background.bytes},
                          {"took_ps", report.background.took.count}};
  }
  if (report.first_tokens.requests != 0) {
    json["first_token"] = {{"requests", report.first_tokens.requests},
                           {"mean_us", report.first_tokens.mean_us},
                           {"p50_us", report.first_tokens.p50_us},
                           {"p99_us", report.first_tokens.p99_us}};
  }
  if (report.limited) json["limited"] = limited_json(*report.limited);
  json["stragglers"] = Json::array();
  for (const Straggler& one : report.stragglers) {
    Json& out = json["stragglers"].emplace_back();
    out["kind"] = one.kind == Straggler::Kind::rank ? "rank" : "nic";
    out["number"] = one.number;
    if (one.kind == Straggler::Kind::rank) {
      out["computing"] = one.computing;
      out["waited_by"] = one.waited_by;
    } else {
      out["sent"] = one.pace.sent;
      out["received"] = one.pace.received;
      if (one.or_else != Straggler::kNobody) out["or_else"] = one.or_else;
    }
  }
  return json;
}

std::string job_trace(const Job& job, const JobReport& report) {
  std::vector<std::uint32_t> order(job.ops.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&report](std::uint32_t a, std::uint32_t b) {
    return report.ops[a].begin < report.ops[b].begin;
  });
  std::vector<std::vector<Picos>> rows(job.ranks);  // when each row of communication is free
  std::string text = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
  for (std::uint32_t rank = 0; rank < job.ranks; ++rank) {
    text += fmt::format(
        "{{\"ph\":\"M\",\"pid\":{0},\"name\":\"process_name\",\"args\":{{\"name\":\"rank "
        "{0}\"}}}},\n",
        rank);
  }
  for (const std::uint32_t id : order) {
    const JobOp& op = job.ops[id];
    const OpTime& time = report.ops[id];
    if (time.begin.count < 0 || time.end <= time.begin) continue;
    std::uint32_t row = kComputeRow;
    if (op.kind != JobOpKind::compute) {
      std::vector<Picos>& free = rows[op.rank];
      const auto at = std::find_if(free.begin(), free.end(),
                                   [&time](Picos until) { return until <= time.begin; });
      row = static_cast<std::uint32_t>(at - free.begin()) + kComputeRow + 1;
      if (at == free.end()) {
        free.push_back(time.end);
      } else {
        *at = time.end;
      }
    }
    text += fmt::format(
        "{{\"ph\":\"X\",\"pid\":{},\"tid\":{},\"name\":{},\"ts\":{:.6f},\"dur\":{:.6f},\"args\":{{"
        "\"bytes\":{}}}}},\n",
        op.rank, row, nlohmann::json(name_of_op(job, op)).dump(), trace_micros(time.begin),
        trace_micros(time.end - time.begin), op.bytes);
  }
  text.resize(text.size() - 2);  // the last comma
  return text + "\n]}\n";
}

}  // namespace paceline::tools
