// schedule.json: written once, digested, read back and checked.
#include <fmt/format.h>

#include "control/experiment/live/plan/schedule.h"
#include "control/experiment/text/json_reader.h"
#include "control/experiment/text/json_writer.h"
#include "dataplane/config/sha256.h"

namespace paceline::experiment::live {

namespace {

constexpr std::uint64_t kScheduleSchema = 1;
constexpr std::uint32_t kMostBlocks = 200'000;
constexpr std::uint32_t kMostClusters = 100'000;
// Streams of the plan's seed: assignments, and (analysis.cc) tests.
constexpr std::uint64_t kAssignmentStream = 0x5C4E;

// Everything that is digested; `digest` follows it in the file.
void write_body(JsonWriter& json, const Schedule& s) {
  json.member("schema", kScheduleSchema);
  json.member("name", std::string_view(s.name));
  json.member("plan_sha256", std::string_view(s.plan_digest));
  json.member("block_ns", s.block_ns);
  json.member("washout_ns", s.washout_ns);
  json.member("carryover_blocks", std::uint64_t{s.mechanism.carryover});
  json.member("stratum_pairs", std::uint64_t{s.mechanism.stratum_pairs});
  json.member("whole_every", std::uint64_t{s.mechanism.whole_every});
  json.list("clusters", s.clusters);
  // One text per block, a digit per cluster: "01" is cluster 0 in arm 0 and cluster 1 in arm 1.
  json.key("blocks");
  json.begin_array();
  for (std::uint32_t b = 0; b < s.blocks(); ++b) {
    std::string arms;
    for (std::uint32_t c = 0; c < s.mechanism.clusters; ++c) {
      arms += static_cast<char>('0' + s.arm(b, c));
    }
    json.value(std::string_view(arms));
  }
  json.end_array();
}

std::string body_digest(const Schedule& schedule) {
  JsonWriter json;
  json.begin_object();
  write_body(json, schedule);
  json.end_object();
  return sha256(std::move(json).finish());
}

// The blocks, as told; errors where a text is not one digit per cluster.
void read_blocks(JsonReader& reader, const JsonReader::Json& list, Schedule& out) {
  const std::size_t clusters = out.clusters.size();
  if (list.empty() || list.size() > kMostBlocks || list.size() % 2 != 0) {
    return reader.error("blocks", fmt::format("{} given; expected pairs of blocks, up to {} in all",
                                              list.size(), kMostBlocks));
  }
  for (std::size_t b = 0; b < list.size(); ++b) {
    const JsonReader::Json& item = list[b];
    const std::string text = item.is_string() ? item.get<std::string>() : std::string();
    if (text.size() != clusters || text.find_first_not_of("01") != std::string::npos) {
      return reader.error(fmt::format("blocks[{}]", b),
                          fmt::format("expected a text of {} digits 0 or 1", clusters));
    }
    for (const char digit : text) out.arms.push_back(static_cast<std::uint8_t>(digit - '0'));
  }
  out.mechanism.blocks = static_cast<std::uint32_t>(list.size());
  out.mechanism.clusters = static_cast<std::uint32_t>(clusters);
}

void read_body(JsonReader& reader, const JsonReader::Json& root, Schedule& out) {
  reader.whole(root, "", "schema", kScheduleSchema, kScheduleSchema);
  out.name = reader.string(root, "", "name");
  out.plan_digest = reader.string(root, "", "plan_sha256");
  constexpr std::uint64_t kMostNs = 31'536'000'000'000'000;  // a year
  out.block_ns = reader.whole(root, "", "block_ns", 1, kMostNs);
  out.washout_ns = reader.whole(root, "", "washout_ns", 0, kMostNs);
  Mechanism& m = out.mechanism;
  m.carryover =
      static_cast<std::uint32_t>(reader.whole(root, "", "carryover_blocks", 0, kMostBlocks));
  m.stratum_pairs =
      static_cast<std::uint32_t>(reader.whole(root, "", "stratum_pairs", 1, kMostBlocks));
  m.whole_every = static_cast<std::uint32_t>(reader.whole(root, "", "whole_every", 0, kMostBlocks));
  out.clusters = reader.names(root, "", "clusters", 1);
  if (out.clusters.size() > kMostClusters) {
    reader.error("clusters", fmt::format("at most {}", kMostClusters));
  }
  if (!reader.errors().empty()) return;
  read_blocks(reader, reader.array(root, "", "blocks"), out);
  out.digest = reader.string(root, "", "sha256");
}

}  // namespace

Schedule make_schedule(const Plan& plan) {
  Schedule schedule;
  schedule.name = plan.name;
  schedule.mechanism = mechanism_of(plan);
  schedule.block_ns = static_cast<std::uint64_t>(to_nanos(plan.block).count);
  schedule.washout_ns = static_cast<std::uint64_t>(to_nanos(plan.washout).count);
  for (const Cluster& cluster : plan.clusters) schedule.clusters.push_back(cluster.name);
  Random random(plan.seed, kAssignmentStream);
  schedule.arms = draw_assignment(schedule.mechanism, random);
  schedule.plan_digest = sha256(plan_text(plan));
  schedule.digest = body_digest(schedule);
  return schedule;
}

std::string schedule_text(const Schedule& schedule) {
  JsonWriter json;
  json.begin_object();
  write_body(json, schedule);
  json.member("sha256", std::string_view(schedule.digest));
  json.end_object();
  return std::move(json).finish();
}

config::Read<Schedule> read_schedule(std::string_view text, const std::string& source,
                                     const Plan* plan) {
  config::Read<Schedule> out;
  const auto root = JsonReader::parse(text);
  if (!root.is_object()) {
    out.errors.push_back(fmt::format("{}: not a JSON object", source));
    return out;
  }
  JsonReader reader(source);
  read_body(reader, root, out.value);
  out.errors = reader.errors();
  if (!out.ok()) return out;
  const std::string digest = body_digest(out.value);
  if (digest != out.value.digest) {
    out.errors.push_back(fmt::format(
        "{}: sha256: the file says {}, its contents are {}; it was changed after it was registered",
        source, out.value.digest, digest));
  }
  if (plan != nullptr) {
    const std::string expected = sha256(plan_text(*plan));
    if (expected != out.value.plan_digest) {
      out.errors.push_back(
          fmt::format("{}: plan_sha256: registered {}, the plan at hand is {}; "
                      "the plan was changed after the schedule was registered",
                      source, out.value.plan_digest, expected));
    }
  }
  return out;
}

}  // namespace paceline::experiment::live
