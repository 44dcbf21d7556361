#include "dataplane/attach/injection/fault_plan.h"

#include <algorithm>
#include <charconv>

#include "dataplane/base/numbers/random.h"
#include "dataplane/base/text/printable.h"

namespace paceline::attach {

namespace {

constexpr std::uint64_t kLongestMicros = 60'000'000;
constexpr std::size_t kMostRules = 64;

template <class Value>
bool parse_whole(std::string_view text, Value& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

bool parse_micros(std::string_view text, std::uint64_t& out) {
  constexpr struct {
    std::string_view unit;
    std::uint64_t micros;
  } kUnits[] = {{"us", 1}, {"ms", 1'000}, {"s", 1'000'000}};
  for (const auto& [unit, micros] : kUnits) {
    if (text.size() <= unit.size() || !text.ends_with(unit)) continue;
    std::uint64_t count = 0;
    if (!parse_whole(text.substr(0, text.size() - unit.size()), count)) continue;
    if (count == 0 || count > kLongestMicros / micros) return false;
    out = count * micros;
    return true;
  }
  return false;
}

bool takes_time(FaultKind kind) { return kind == FaultKind::slow || kind == FaultKind::port_down; }

std::string kinds_allowed() {
  std::string list;
  for (const std::string_view kind : kFaultKinds) {
    if (!list.empty()) list += ", ";
    list += kind;
  }
  return list;
}

std::string set_key(std::string_view key, std::string_view value, FaultRule& rule) {
  if (key == "at" || key == "every") {
    std::uint64_t& count = key == "at" ? rule.at : rule.every;
    if (parse_count(value, count) && count != 0) return {};
    return "expected a whole number from 1";
  }
  if (key == "rate") {
    if (parse_whole(value, rule.rate) && rule.rate > 0 && rule.rate <= 1) return {};
    return "expected a probability above 0, at most 1";
  }
  if (key == "for") {
    if (!takes_time(rule.kind)) return "only slow and port-down take a time";
    if (parse_micros(value, rule.for_us)) return {};
    return "expected a whole number of us, ms or s, at most 60s";
  }
  if (key == "qp") {
    if (parse_whole(value, rule.queue_pair) && rule.queue_pair != 0) return {};
    return "expected the number of a queue pair, from 1 in the order in which they are made";
  }
  return "no such key; allowed are at, every, rate, for and qp";
}

std::string parse_rule(std::string_view text, FaultRule& rule) {
  const std::size_t comma = std::min(text.find(','), text.size());
  const auto kind = enum_value<FaultKind>(kFaultKinds, text.substr(0, comma));
  if (!kind) return "no such fault; allowed are " + kinds_allowed();
  rule.kind = *kind;
  int times = 0;
  for (std::size_t at = comma; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at + 1), text.size());
    const std::string_view part = text.substr(at + 1, end - at - 1);
    at = end;
    const std::size_t equals = std::min(part.find('='), part.size());
    const std::string_view key = part.substr(0, equals);
    const std::string_view value = part.substr(std::min(equals + 1, part.size()));
    if (const std::string error = set_key(key, value, rule); !error.empty()) {
      return in_quotes(part) + ": " + error;
    }
    times += key == "at" || key == "every" || key == "rate" ? 1 : 0;
  }
  if (times != 1) return "expected one of at=N, every=N and rate=P";
  if (takes_time(rule.kind) && rule.for_us == 0) return "expected for=TIME, such as for=5ms";
  return {};
}

}  // namespace

bool parse_count(std::string_view text, std::uint64_t& out) { return parse_whole(text, out); }

bool FaultRule::hits(std::uint64_t seed, std::uint32_t rule, std::uint32_t queue_pair_number,
                     std::uint64_t request) const {
  if (queue_pair != 0 && queue_pair != queue_pair_number) return false;
  if (at != 0) return request == at;
  if (every != 0) return request % every == 0;
  const std::uint64_t stream = mix64(std::uint64_t{rule} << 32U | queue_pair_number);
  return Random(seed ^ stream, request).uniform() < rate;
}

std::string parse_fault_rules(std::string_view text, std::vector<FaultRule>& out) {
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(';', at), text.size());
    const std::string_view one = text.substr(at, end - at);
    at = end + 1;
    FaultRule rule;
    if (const std::string error = parse_rule(one, rule); !error.empty()) {
      return in_quotes(one) + ": " + error;
    }
    if (out.size() == kMostRules) return "more than 64 faults";
    out.push_back(rule);
  }
  return {};
}

}  // namespace paceline::attach
