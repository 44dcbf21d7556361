#include "tests/sim/calibration.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <tuple>

#include "cc/registry.h"
#include "dataplane/base/numbers/random.h"
#include "dataplane/config/scenario/scenario_reader.h"
#include "tools/workload/workload.h"

namespace paceline::calibration {
namespace {

constexpr std::uint32_t kReferenceDraws = 5;
constexpr std::uint32_t kSenders = 16;
constexpr std::uint64_t kMessageBytes = 1'000'000;
constexpr std::uint64_t kJitterNanos = 1000;

double micros(Picos t) { return static_cast<double>(t.count) / 1e6; }

void sort(MessagePlan& plan) {
  std::sort(plan.messages.begin(), plan.messages.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.start.count, a.src, a.dst) < std::tuple(b.start.count, b.src, b.dst);
  });
}

PlannedMessage flow(std::uint32_t src, std::uint32_t dst, std::uint64_t bytes,
                    std::uint64_t start_ns) {
  PlannedMessage message;
  message.src = src;
  message.dst = dst;
  message.bytes = bytes;
  message.start = Picos{static_cast<std::int64_t>(start_ns) * 1000};
  return message;
}

std::string joined(const std::vector<std::string>& errors) {
  std::string all;
  for (const std::string& error : errors) all += error + "\n";
  return all;
}

void check_close(const char* what, double ours, const Band& band) {
  INFO(what << ": " << ours << ", reference " << band.mean << " +- " << band.tolerance());
  CHECK(ours >= band.mean - band.tolerance());
  CHECK(ours <= band.mean + band.tolerance());
}

}  // namespace

std::string reference_path(const std::string& name) {
  return std::string(PACELINE_SOURCE_DIR) + "/tests/sim/reference/" + name;
}

config::Scenario scenario(const std::string& name, const std::string& profile) {
  config::ReaderOptions options;
  options.algorithms = cc::algorithms();
  options.overrides = {"cc.profile=" + profile};
  auto read = config::read_scenario_file(
      std::string(PACELINE_SOURCE_DIR) + "/configs/scenarios/calibration/" + name + ".toml",
      options);
  if (!read.ok()) throw std::runtime_error(joined(read.errors));
  return std::move(read.value);
}

MessagePlan reference_flows(const std::string& name) {
  std::ifstream file(reference_path(name));
  std::string line;
  if (!std::getline(file, line) || line != "src,dst,size_bytes,start_ns") {
    throw std::runtime_error("not a flow list: " + name);
  }
  MessagePlan plan;
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::uint32_t src = 0, dst = 0;
    std::uint64_t bytes = 0, start_ns = 0;
    char c1 = 0, c2 = 0, c3 = 0;
    if (!(fields >> src >> c1 >> dst >> c2 >> bytes >> c3 >> start_ns)) {
      throw std::runtime_error(name + ": " + line);
    }
    plan.messages.push_back(flow(src, dst, bytes, start_ns));
  }
  sort(plan);
  return plan;
}

MessagePlan scenario_flows(const config::Scenario& from) {
  config::Scenario copy = from;
  const auto inputs = workload::load_inputs(copy);
  if (!inputs.ok()) throw std::runtime_error(joined(inputs.errors));
  auto plan = workload::make_plan(copy, inputs.value, copy.seed);
  if (!plan.ok()) throw std::runtime_error(joined(plan.errors));
  return std::move(plan.value);
}

bool same_flows(const MessagePlan& a, const MessagePlan& b) {
  return std::equal(a.messages.begin(), a.messages.end(), b.messages.begin(), b.messages.end(),
                    [](const auto& x, const auto& y) {
                      return x.src == y.src && x.dst == y.dst && x.bytes == y.bytes &&
                             x.start == y.start;
                    });
}

MessagePlan jittered_incast(std::uint32_t draw) {
  if (draw < kReferenceDraws) {
    return reference_flows("S1j" + std::to_string(draw) + "_incast16_1MB.flows.csv");
  }
  Random random(draw);
  MessagePlan plan;
  for (std::uint32_t src = 0; src < kSenders; ++src) {
    plan.messages.push_back(flow(src, kSenders, kMessageBytes, random.below(kJitterNanos)));
  }
  sort(plan);
  return plan;
}

Incast run_incast(const config::Scenario& scenario, const MessagePlan& plan) {
  WorldOptions options;
  options.check_invariants = true;
  VirtualWorld world(scenario, plan, options);
  const RunEnd end = world.run();
  INFO(to_string(end) << " " << world.problem());
  REQUIRE(end == RunEnd::completed);
  REQUIRE(world.messages_failed() == 0);
  // The reference had neither; with either, what is compared would be something else.
  REQUIRE(world.network().stats().total_drops() == 0);
  REQUIRE(world.network().stats().pause_frames == 0);

  Incast out;
  for (std::size_t i = 0; i < plan.messages.size(); ++i) {
    const MessageRecord& record = world.records()[i];
    out.fct_mean_us += micros(record.completed - record.ready);
    out.last_us = std::max(out.last_us, micros(record.completed));
  }
  out.fct_mean_us /= static_cast<double>(plan.messages.size());
  out.max_queue_bytes = static_cast<double>(world.network().last_hop_max_bytes());
  for (std::uint32_t h = 0; h < world.hosts(); ++h) {
    REQUIRE(world.engine(h).counters().retransmitted_packets == 0);
    out.marked_acks += static_cast<double>(world.engine(h).counters().cnps_received);
  }
  return out;
}

Incast mean(const std::vector<Incast>& runs) {
  Incast sum;
  for (const Incast& run : runs) {
    sum.fct_mean_us += run.fct_mean_us;
    sum.last_us += run.last_us;
    sum.max_queue_bytes += run.max_queue_bytes;
    sum.marked_acks += run.marked_acks;
  }
  const auto n = static_cast<double>(runs.size());
  return {sum.fct_mean_us / n, sum.last_us / n, sum.max_queue_bytes / n, sum.marked_acks / n};
}

double Band::tolerance() const { return std::max(0.1 * mean, 3 * sd); }

IncastBand reference_band(const std::string& cc) {
  std::ifstream file(reference_path("tolerance_bands.json"));
  const auto bands = nlohmann::json::parse(file);
  const auto read = [](const nlohmann::json& from, double factor) {
    return Band{from.at("mean").get<double>() * factor, from.at("sd").get<double>() * factor};
  };
  for (const auto& entry : bands) {
    if (entry.at("cc").get<std::string>() != cc) continue;
    return {read(entry.at("fct_mean_us"), kClockCorrection),
            read(entry.at("last_us"), kClockCorrection), read(entry.at("maxq_B"), 1),
            read(entry.at("marked_acks"), 1)};
  }
  throw std::runtime_error("no band for " + cc);
}

void check_within(const Incast& ours, const IncastBand& reference) {
  check_close("mean FCT, us", ours.fct_mean_us, reference.fct_mean_us);
  check_close("last finish, us", ours.last_us, reference.last_us);
  check_close("deepest queue, B", ours.max_queue_bytes, reference.max_queue_bytes);
  check_close("marked ACKs", ours.marked_acks, reference.marked_acks);
}

}  // namespace paceline::calibration
