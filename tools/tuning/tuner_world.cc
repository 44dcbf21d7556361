#include "tools/tuning/tuner_world.h"

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "tools/tuning/tuner_window.h"
#include "tools/workload/generators.h"
#include "tools/workload/workload.h"

namespace paceline::tools {

namespace {

using tuner::online::ConstraintWatch;
using tuner::online::JournalEntry;
using tuner::online::Mode;
using tuner::online::PresetLibrary;
using tuner::online::Role;
using tuner::online::SignatureBuilder;
using tuner::online::Surroundings;
using tuner::online::Tuner;
using tuner::online::TunerOptions;
using tuner::online::Window;

constexpr std::uint32_t kGlances = 4;  // per window

// A world that runs until `on_window` says that it is enough.
class WindowedWorld {
 public:
  using OnWindow = std::function<bool(VirtualWorld&, Picos, WindowReader&)>;

  WindowedWorld(const PreparedScenario& prepared, const config::CcConfig& cc,
                const TunerWorldOptions& options, Picos length, std::uint64_t seed)
      : options_(options), scenario_(prepared.scenario) {
    scenario_.cc = cc;
    scenario_.seed = seed;
    // Traffic continues beyond the last window.
    length += options.wave * 2 + options.window * 10;
    scenario_.duration = length;
    scenario_.max_hops = 0;
    plan_ = endless_plan(prepared, options, length, seed);
  }

  // Whether `on_window` was satisfied; otherwise the time was over, or the run was stopped.
  bool run(const OnWindow& on_window) {
    WorldOptions world_options;
    world_options.stop = &stop_;
    std::unique_ptr<WindowReader> reader;
    bool satisfied = false;
    std::uint32_t glances = 0;
    world_options.control_interval = {options_.window.count / kGlances};
    world_options.control = [&](VirtualWorld& world, Picos now) {
      if (now.count == 0 || satisfied) return;
      if (reader == nullptr) reader = std::make_unique<WindowReader>(scenario_, world);
      if (options_.stop != nullptr && options_.stop->load()) stop_ = true;
      if (++glances % kGlances != 0) return reader->glance(now);
      if (on_window(world, now, *reader)) stop_ = satisfied = true;
    };
    VirtualWorld world(scenario_, std::move(plan_), std::move(world_options));
    world.run();
    if (!world.problem().empty()) throw std::invalid_argument(world.problem());
    return satisfied;
  }

 private:
  const TunerWorldOptions& options_;
  config::Scenario scenario_;
  MessagePlan plan_;
  std::atomic<bool> stop_ = false;
};

}  // namespace

TunerOptions tuner_options(const TunerWorldOptions& options, const PreparedScenario& prepared,
                           std::uint64_t seed) {
  TunerOptions out;
  out.mode = Mode::automatic;
  out.seed = seed;
  out.block_windows = options.block_windows;
  out.wash_windows = options.wash_windows();
  out.learn_windows = 2 * options.block_windows;
  // As on a running host, where the guard looks at 100 ms, ten windows.
  out.guard_ns = 10 * options.window.count / 1000;
  out.cool_blocks = 2;
  out.constraints.queue_p99_bytes =
      options.queue_share * static_cast<double>(prepared.scenario.fabric.buffer_bytes);
  // A span is at least a block, so that it holds whole waves.
  out.change.span_windows = options.block_windows;
  return out;
}

MessagePlan endless_plan(const PreparedScenario& prepared, const TunerWorldOptions& options,
                         Picos length, std::uint64_t seed) {
  const auto made = [](config::Read<MessagePlan> read) {
    if (!read.ok()) throw std::invalid_argument(read.errors.front());
    return std::move(read.value);
  };
  config::Scenario scenario = prepared.scenario;
  MessagePlan plan;
  if (options.wave.count == 0) {
    scenario.workload.window = length;
    plan = made(workload::make_plan(scenario, prepared.inputs, seed));
  } else {
    // All waves of an all-to-all have the same hot and cold hosts, because these belong to the
    // workload: drawn for each wave, they would load the busiest receiver with anything from a
    // quarter of its line rate to all of it. Only the times at which hosts begin are drawn per
    // wave. Other workloads are drawn for each wave.
    const bool same = scenario.workload.kind == "all_to_all";
    const Picos jitter = scenario.workload.start_jitter;
    if (same) scenario.workload.start_jitter = Picos{0};
    std::uint64_t wave = mix64(seed);
    for (Picos at{0}; at < length; at += options.wave, ++wave) {
      MessagePlan one =
          made(workload::make_plan(scenario, prepared.inputs, same ? scenario.seed : wave));
      std::vector<Picos> starts;
      if (same) starts = workload::host_starts(jitter, scenario.fabric.hosts, wave);
      const auto first = static_cast<std::uint32_t>(plan.messages.size());
      for (PlannedMessage message : one.messages) {
        message.start += at;
        if (same) message.start += starts[message.src];
        if (message.after != kNoMessage) message.after += first;
        message.collective = 0;
        plan.messages.push_back(message);
      }
    }
  }
  plan.collectives.clear();
  workload::sort_plan(plan);
  return plan;
}

config::CcConfig config_of(const config::CcConfig& cc, const cc::AlgorithmInfo& info,
                           const std::vector<double>& values) {
  config::CcConfig out = cc;
  out.params.clear();
  for (std::size_t i = 0; i < info.params.size(); ++i) {
    out.params.push_back({std::string(info.params[i].name), values[i]});
  }
  return out;
}

FixedRun run_fixed(const PreparedScenario& prepared, const config::CcConfig& cc,
                   const TunerWorldOptions& options, std::uint32_t blocks, std::uint64_t seed) {
  FixedRun out;
  const TunerOptions tuner = tuner_options(options, prepared, seed);
  ConstraintWatch watch(tuner.constraints, tuner.guard_ns);
  SignatureBuilder builder;
  Window block;
  std::uint32_t windows = 0;
  std::uint32_t done = 0;
  bool breached = false;
  // One block to warm up.
  const Picos length =
      options.window * (std::int64_t{blocks} + 1) * options.block_windows + options.window;
  WindowedWorld world(prepared, cc, options, length, seed);
  out.finished = world.run([&](VirtualWorld&, Picos now, WindowReader& reader) {
    const Window window = reader.window(now, 0);
    ++windows;
    if (windows > options.block_windows) {
      builder.add(window);
      if (const auto breach = watch.add(window)) {
        if (out.breach.empty()) out.breach = breach->words;
        breached = true;
      }
      tuner::online::add(block, window);
    }
    if (windows % options.block_windows != 0 || windows == options.block_windows) return false;
    if (const auto value = tuner::online::objective(tuner::online::objective_parts(block)))
      out.objective.push_back(*value);
    block = {};
    out.breaches += std::exchange(breached, false) ? 1 : 0;
    if (options.progress) options.progress(static_cast<double>(done + 1) / blocks);
    return ++done == blocks;
  });
  out.signature = builder.signature();
  return out;
}

TunedRun run_tuned(const PreparedScenario& prepared, const cc::AlgorithmInfo& info,
                   const PresetLibrary& presets, const std::vector<double>& champion,
                   const TunerWorldOptions& options, const TunerOptions& tuner_options,
                   std::uint32_t pairs, std::uint64_t seed, const TunedRunHooks& hooks) {
  TunedRun out;
  Tuner tuner(info, presets, champion, tuner_options,
              [&](const JournalEntry& entry) { out.journal.push_back(entry); });
  ConstraintWatch watch(tuner_options.constraints, tuner_options.guard_ns);
  std::uint64_t order = 0;
  Role role = Role::champion;
  std::int64_t breached_since = -1;
  std::uint8_t epoch = 0;
  const config::CcConfig& cc = prepared.scenario.cc;
  // Four blocks for each pair are more than enough for learning, wash-outs and cool-downs too.
  const Picos length = options.window * (std::int64_t{pairs} + 10) * 4 * options.block_windows;
  WindowedWorld world(prepared, config_of(cc, info, champion), options, length, seed);
  out.finished = world.run([&](VirtualWorld& running, Picos now, WindowReader& reader) {
    Window window = reader.window(now, order);
    Surroundings around;
    if (hooks.window) hooks.window(window, around);
    ++out.windows;
    if (role != Role::champion && watch.add(window)) {
      if (breached_since < 0) breached_since = window.begin_ns;
      out.longest_breach_ns = std::max(out.longest_breach_ns, window.end_ns - breached_since);
    } else {
      breached_since = -1;
    }
    if (const auto given = tuner.step(window, around)) {
      running.reconfigure(running.cc_setup(config_of(cc, info, given->values)),
                          static_cast<std::uint8_t>(given->role), ++epoch);
      order = given->number;
      role = given->role;
      watch.clear();
    }
    const std::uint64_t finished = tuner.status().pairs;
    if (options.progress) options.progress(static_cast<double>(finished) / pairs);
    return finished >= pairs;
  });
  out.status = tuner.status();
  return out;
}

}  // namespace paceline::tools
