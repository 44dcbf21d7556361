// How fast the whole engine runs in virtual time: hops per second of CPU time, end to end (the
// world is built, run and its conservation laws are checked; making the plan is left out). Five
// rounds over all cases in turn, so that a slow spell of the machine hits all of them; best and
// median of each.
//
// A shared machine drifts, so each round also measures two limits that do not depend on the
// transport: the bare fabric under synthetic hosts (incast, and for the permutations a fat tree of
// 1,024 hosts), and pop and push of a std::priority_queue of 192 entries. The ratios to them
// compare across machines better than the speeds do.
//
//   bench_emulate [--rounds N] [--only TEXT] [--json FILE]
#include <ctime>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <functional>
#include <queue>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "dataplane/base/numbers/random.h"
#include "dataplane/fabric/topology/clos.h"
#include "dataplane/fabric/topology/topology.h"
#include "tests/bench/synthetic_hosts.h"
#include "tests/perf/worlds.h"

namespace paceline {
namespace {

double thread_cpu_seconds() {
  std::timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

struct Row {
  std::string name;
  perf::WorldCase which;
  std::uint64_t hops = 0;
  std::uint64_t events = 0;
  std::uint64_t trace_hash = 0;
  std::vector<double> speeds;  // hops/s, one per round
  bool sweep = true;           // windows node by node where it can be; else event by event
};

double best(const std::vector<double>& speeds) {
  return *std::max_element(speeds.begin(), speeds.end());
}
double median(std::vector<double> speeds) {
  std::sort(speeds.begin(), speeds.end());
  const std::size_t n = speeds.size();
  return (speeds[(n - 1) / 2] + speeds[n / 2]) / 2;
}

std::vector<Row> cases() {
  std::vector<Row> rows;
  for (const char* algorithm : {"dcqcn", "cadence", "fixed"}) {
    rows.push_back({fmt::format("incast 63:1, 4096 B, {}", algorithm),
                    {"incast", algorithm, 20'000'000, 4096},
                    0,
                    0,
                    0,
                    {},
                    true});
  }
  for (const char* algorithm : {"dcqcn", "cadence", "fixed"}) {
    rows.push_back({fmt::format("incast 63:1, 1024 B, {}", algorithm),
                    {"incast", algorithm, 5'000'000, 1024},
                    0,
                    0,
                    0,
                    {},
                    true});
  }
  for (const char* algorithm : {"dcqcn", "cadence", "fixed"}) {
    rows.push_back({fmt::format("MoE all-to-all 32, 4096 B, {}", algorithm),
                    {"moe", algorithm, 1'000'000, 4096},
                    0,
                    0,
                    0,
                    {},
                    true});
  }
  // 250 kB are as much set-up and first round trips as they are traffic; 1 MB is traffic.
  struct Tree {
    const char* hosts;
    const char* size;
    std::uint64_t message_bytes;
    bool by_event;
  };
  for (const Tree& tree :
       {Tree{"1024", "1 MB", 1'000'000, true}, Tree{"8192", "250 kB", 250'000, true},
        Tree{"8192", "1 MB", 1'000'000, false}}) {
    rows.push_back({fmt::format("permutation, fat tree of {}, {}", tree.hosts, tree.size),
                    {fmt::format("permutation-{}", tree.hosts), "dcqcn", tree.message_bytes, 4096},
                    0,
                    0,
                    0,
                    {},
                    true});
    if (!tree.by_event) continue;
    Row by_event = rows.back();
    by_event.name += ", event by event";
    by_event.sweep = false;
    rows.push_back(std::move(by_event));
  }
  return rows;
}

void run_once(Row& row) {
  const config::Scenario scenario = perf::scenario_of(row.which);
  MessagePlan plan = perf::plan_of(scenario);
  const double begin = thread_cpu_seconds();
  WorldOptions options;
  options.sweep = row.sweep;
  VirtualWorld world(scenario, std::move(plan), std::move(options));
  perf::run_to_completion(world);
  const double spent = thread_cpu_seconds() - begin;
  row.hops = world.network().stats().hops;
  row.events = world.events();
  row.trace_hash = world.trace_hash();
  row.speeds.push_back(static_cast<double>(row.hops) / spent);
}

// One run by one thread and by two, in turn, by the clock: what --threads 2 gains where it has both
// processors to itself. Also what both threads did with their time.
struct Shared {
  std::vector<double> one, two;  // seconds
  std::vector<double> cpu, waiting;
};

void run_shared(Shared& shared) {
  const config::Scenario scenario =
      perf::scenario_of({"permutation-1024", "dcqcn", 1'000'000, 4096});
  std::uint64_t hash = 0;
  for (const std::uint32_t threads : {1U, 2U}) {
    MessagePlan plan = perf::plan_of(scenario);
    WorldOptions options;
    options.threads = threads;
    const auto begin = std::chrono::steady_clock::now();
    VirtualWorld world(scenario, std::move(plan), std::move(options));
    perf::run_to_completion(world);
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    (threads == 1 ? shared.one : shared.two).push_back(spent.count());
    if (threads == 1) {
      hash = world.trace_hash();
      continue;
    }
    if (world.trace_hash() != hash) throw std::runtime_error("two threads: another trace hash");
    for (const ThreadUse& use : world.thread_use().threads) {
      shared.cpu.push_back(use.cpu_seconds);
      shared.waiting.push_back(use.waiting_seconds);
    }
  }
}

// Permutation traffic on a fat tree of 1,024 hosts without a transport.
double bare_tree_hops_per_second() {
  constexpr std::uint64_t kHops = 1'000'000;
  const fabric::ClosShape shape{16, 8, 8, 64, 8, 1};
  const Rate rate = rate_from_gbps(100);
  const Picos delay = picos_from_micros(1);
  fabric::SyntheticRun run(fabric::clos(shape, {rate, rate, rate, delay, delay}), 8);
  const std::uint32_t hosts = shape.hosts();
  for (std::uint32_t host = 0; host < hosts; ++host) {
    run.start(host, (host * 257 + 131) % hosts, 4096, 160'000);
  }
  run.until_hops(200'000);
  const std::uint64_t before = run.net().stats().hops;
  const double begin = thread_cpu_seconds();
  run.until_hops(before + kHops);
  return static_cast<double>(run.net().stats().hops - before) / (thread_cpu_seconds() - begin);
}

// The same incast without a transport, as bench_fabric runs it.
double bare_fabric_hops_per_second() {
  constexpr std::uint32_t kHosts = 64;
  constexpr std::uint64_t kHops = 1'500'000;
  const fabric::FabricSpec spec = fabric::star(kHosts, rate_from_gbps(100), picos_from_micros(1));
  fabric::SyntheticRun run(spec, 14);
  run.start(0, 1, 4096, 0);
  for (std::uint32_t host = 1; host < kHosts; ++host) run.start(host, 0, 4096, 160'000);
  run.until_hops(100'000);
  const std::uint64_t before = run.net().stats().hops;
  const double begin = thread_cpu_seconds();
  run.until_hops(before + kHops);
  return static_cast<double>(run.net().stats().hops - before) / (thread_cpu_seconds() - begin);
}

double priority_queue_holds_per_second() {
  using Entry = std::pair<std::uint64_t, std::uint32_t>;
  constexpr std::uint64_t kHolds = 4'000'000;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  Random random(1);
  for (std::uint32_t i = 0; i < 192; ++i) queue.emplace(random.below(1'340'000), i);
  std::uint64_t last = 0;
  const double begin = thread_cpu_seconds();
  for (std::uint64_t i = 0; i < kHolds; ++i) {
    const auto [time, actor] = queue.top();
    queue.pop();
    queue.emplace(time + 7'000 + random.below(1'340'000), actor);
    last = time;
  }
  const double spent = thread_cpu_seconds() - begin;
  if (last == 0) std::abort();  // keeps the loop
  return static_cast<double>(kHolds) / spent;
}

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown CPU";
}

std::string load_average() {
  std::ifstream file("/proc/loadavg");
  std::string one;
  file >> one;
  return one.empty() ? "unknown" : one;
}

int run(unsigned rounds, const std::string& only, const std::string& json_path) {
  std::vector<Row> rows = cases();
  std::erase_if(rows, [&only](const Row& r) { return r.name.find(only) == std::string::npos; });
  if (rows.empty() && std::string("threads 2").find(only) == std::string::npos) {
    fmt::print(stderr, "bench_emulate: no case has '{}' in its name\n", only);
    return 2;
  }
  const std::string load = load_average();
  std::vector<double> fabric, tree, holds;
  const bool shares = std::string("threads 2").find(only) != std::string::npos;
  Shared shared;
  for (unsigned round = 0; round < rounds; ++round) {
    fabric.push_back(bare_fabric_hops_per_second());
    tree.push_back(bare_tree_hops_per_second());
    holds.push_back(priority_queue_holds_per_second());
    for (Row& row : rows) run_once(row);
    if (shares) run_shared(shared);
  }

  fmt::print("{}; load average {} at the start; {} rounds; thread CPU time\n\n", cpu_model(), load,
             rounds);
  fmt::print("{:<55} {:>9} {:>7} {:>7} {:>7} {:>8} {:>7}  {}\n", "", "hops", "best", "median",
             "ns/hop", "fabric", "holds", "trace hash");
  nlohmann::ordered_json json;
  json["cpu"] = cpu_model();
  json["load_average"] = load;
  json["rounds"] = rounds;
  json["bare_fabric_hops_per_s"] = {{"best", best(fabric)}, {"median", median(fabric)}};
  json["bare_tree_hops_per_s"] = {{"best", best(tree)}, {"median", median(tree)}};
  json["priority_queue_holds_per_s"] = {{"best", best(holds)}, {"median", median(holds)}};
  for (const Row& row : rows) {
    const double top = best(row.speeds);
    const bool on_tree = row.which.workload.starts_with("permutation");
    const double bare = best(on_tree ? tree : fabric);
    fmt::print("{:<55} {:>9} {:>6.2f}M {:>6.2f}M {:>7.1f} {:>8.3f} {:>7.3f}  {:016x}\n", row.name,
               row.hops, top / 1e6, median(row.speeds) / 1e6, 1e9 / top, top / bare,
               top / best(holds), row.trace_hash);
    json["cases"].push_back({{"name", row.name},
                             {"hops", row.hops},
                             {"events", row.events},
                             {"best_hops_per_s", top},
                             {"median_hops_per_s", median(row.speeds)},
                             {"hops_per_s", row.speeds},
                             {"of_bare_fabric", top / bare},
                             {"of_priority_queue", top / best(holds)},
                             {"trace_hash", fmt::format("{:016x}", row.trace_hash)}});
  }
  fmt::print(
      "\nlimits, best: bare fabric {:.2f} M hops/s, bare fat tree of 1,024 hosts {:.2f} M hops/s; "
      "std::priority_queue of 192 entries {:.2f} M pop-and-push/s\n",
      best(fabric) / 1e6, best(tree) / 1e6, best(holds) / 1e6);
  if (shares) {
    const double ratio = median(shared.one) / median(shared.two);
    fmt::print(
        "\nthreads 2, permutation of 1,024 hosts, by the clock: one thread {:.2f} s, two {:.2f} s "
        "(medians), ratio {:.2f}; CPU time of a thread {:.2f} s, of which by the clock waiting "
        "{:.2f} s\n",
        median(shared.one), median(shared.two), ratio, median(shared.cpu), median(shared.waiting));
    json["threads_2"] = {{"one_thread_s", shared.one},
                         {"two_threads_s", shared.two},
                         {"ratio_of_medians", ratio},
                         {"cpu_s", shared.cpu},
                         {"waiting_s", shared.waiting}};
  }
  if (!json_path.empty()) {
    std::ofstream out(json_path);
    out << json.dump(2) << '\n';
    if (!out.flush()) {
      fmt::print(stderr, "bench_emulate: cannot write {}\n", json_path);
      return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace paceline

int main(int argc, char** argv) {
  unsigned rounds = 5;
  std::string only;
  std::string json;
  for (int i = 1; i < argc; i += 2) {
    const std::string option = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    if (option == "--rounds" && std::strtoul(value.c_str(), nullptr, 10) > 0) {
      rounds = static_cast<unsigned>(std::strtoul(value.c_str(), nullptr, 10));
    } else if (option == "--only" && !value.empty()) {
      only = value;
    } else if (option == "--json" && !value.empty()) {
      json = value;
    } else {
      fmt::print(stderr, "usage: bench_emulate [--rounds N] [--only TEXT] [--json FILE]\n");
      return 2;
    }
  }
  try {
    return paceline::run(rounds, only, json);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_emulate: {}\n", error.what());
    return 1;
  }
}
