#include "tools/collective/rank/plan/plan_part.h"

namespace paceline::rank {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kNumbersOfLine = 1 << 14;

Json send_row(const PlanSend& s) {
  return Json::array({s.id, s.to, s.bytes, s.start.count, s.gap.count, s.lane, s.at,
                      s.service_level, s.computes, s.after});
}

PlanSend send_of(const Json& row) {
  PlanSend s;
  s.id = row.at(0).get<std::uint32_t>();
  s.to = row.at(1).get<std::uint32_t>();
  s.bytes = row.at(2).get<std::uint64_t>();
  s.start.count = row.at(3).get<std::int64_t>();
  s.gap.count = row.at(4).get<std::int64_t>();
  s.lane = row.at(5).get<std::uint32_t>();
  s.at = row.at(6).get<std::uint64_t>();
  s.service_level = row.at(7).get<std::uint8_t>();
  s.computes = row.at(8).get<bool>();
  s.after = row.at(9).get<std::vector<std::uint32_t>>();
  return s;
}

Json arrival_row(const PlanArrival& a) {
  return Json::array({a.id, a.from, a.bytes, a.lane, a.at});
}

PlanArrival arrival_of(const Json& row) {
  return {row.at(0).get<std::uint32_t>(), row.at(1).get<std::uint32_t>(),
          row.at(2).get<std::uint64_t>(), row.at(3).get<std::uint32_t>(),
          row.at(4).get<std::uint64_t>()};
}

class LineCutter {
 public:
  explicit LineCutter(std::vector<Json>& lines) : lines_(lines) { begin(); }

  void add(const char* kind, Json row, std::size_t numbers) {
    if (numbers_ + numbers > kNumbersOfLine) begin();
    numbers_ += numbers;
    lines_.back()[kind].push_back(std::move(row));
  }

 private:
  void begin() {
    lines_.push_back(Json::object());
    numbers_ = 0;
  }

  std::vector<Json>& lines_;
  std::size_t numbers_ = 0;
};

}  // namespace

std::vector<Json> part_lines(const PlanPart& part) {
  std::vector<Json> lines;
  LineCutter cutter(lines);
  for (const PlanSend& s : part.sends) cutter.add("sends", send_row(s), 10 + s.after.size());
  for (const PlanArrival& a : part.arrivals) cutter.add("arrivals", arrival_row(a), 5);
  lines.back()["last"] = {{"data", part.data}, {"receive_bytes", part.receive_bytes}};
  return lines;
}

bool add_part_line(const Json& line, PlanPart& part) {
  if (line.contains("sends")) {
    for (const Json& row : line.at("sends")) part.sends.push_back(send_of(row));
  }
  if (line.contains("arrivals")) {
    for (const Json& row : line.at("arrivals")) part.arrivals.push_back(arrival_of(row));
  }
  if (!line.contains("last")) return false;
  part.data = line.at("last").at("data").get<bool>();
  part.receive_bytes = line.at("last").at("receive_bytes").get<std::uint64_t>();
  return true;
}

}  // namespace paceline::rank
