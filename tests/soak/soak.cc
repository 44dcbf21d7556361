// The soak: every verb and size over a cable that loses, repeats, reorders and damages packets, for
// as many packets and seeds as asked for. docs/transport.md says what it claims.
#include <fmt/format.h>

#include <unistd.h>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "dataplane/config/command_line.h"
#include "tests/soak/world.h"

namespace paceline::soak {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Rewrites one line of a terminal; elsewhere a line every ten seconds.
class Progress {
 public:
  explicit Progress(const Options& options) : options_(options) {}

  void show(std::uint64_t seed, std::uint64_t packets) {
    if (!options_.progress) return;
    const double now = seconds_since(start_);
    if (now - shown_ < (terminal_ ? 0.25 : 10)) return;
    shown_ = now;
    const double whole =
        static_cast<double>(options_.seeds) * static_cast<double>(options_.packets);
    const double done =
        static_cast<double>(seed - options_.seed) * static_cast<double>(options_.packets) +
        static_cast<double>(std::min(packets, options_.packets));
    const double left = done > 0 ? now * (whole - done) / done : 0;
    fmt::print(stderr,
               "{}seed {}: {:.1f} of {:.1f} million packets, {:.0f} % of all, {:.0f} s left{}",
               terminal_ ? "\r" : "", seed, static_cast<double>(packets) / 1e6,
               static_cast<double>(options_.packets) / 1e6, 100 * done / whole, left,
               terminal_ ? "\033[K" : "\n");
    std::fflush(stderr);
  }
  void clear() const {
    if (options_.progress && terminal_ && shown_ > 0) fmt::print(stderr, "\r\033[K");
  }

 private:
  const Options& options_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  bool terminal_ = isatty(STDERR_FILENO) != 0;
  double shown_ = 0;
};

// False when a claim did not hold.
bool run_seed(const Options& options, std::uint64_t seed, Progress& progress) {
  std::string description;
  try {
    const auto start = std::chrono::steady_clock::now();
    World world(options, seed);
    description = world.description();
    const Totals t = world.run([&](std::uint64_t packets) { progress.show(seed, packets); });
    progress.clear();
    fmt::print(
        "seed {}: ok, {} packets in {:.1f} s ({}): {} messages, {:.1f} MB by RC, {} sent again, {} "
        "timeouts, {} RNR, {} of {} damaged found, UC and UD {} of {} delivered\n",
        seed, t.packets, seconds_since(start), description, t.messages,
        static_cast<double>(t.reliable_bytes) / 1e6, t.retransmitted, t.timeouts, t.rnr,
        t.damaged_found, t.damaged, t.unreliable_delivered, t.unreliable_sent);
    std::fflush(stdout);
    return true;
  } catch (const Broken& broken) {
    progress.clear();
    fmt::print("seed {}: FAILED ({}): {}\n", seed, description, broken.what());
    std::fflush(stdout);
    return false;
  }
}

// Every seed, also behind one that failed.
int run_seeds(const Options& options) {
  Progress progress(options);
  std::vector<std::uint64_t> failed;
  for (std::uint64_t seed = options.seed; seed != options.seed + options.seeds; ++seed) {
    if (!run_seed(options, seed, progress)) failed.push_back(seed);
  }
  if (failed.empty()) return 0;
  fmt::print("{} of {} seeds failed; each again, alone:\n", failed.size(), options.seeds);
  for (const std::uint64_t seed : failed) fmt::print("  {}\n", reproduction(options, seed));
  return 1;
}

// --- hashes: the runs of a seed, compared from one build to another ---

constexpr std::uint64_t kPinnedSeeds = 6;  // of every mode, 1 and up
constexpr std::uint64_t kPinnedPackets = 20'000;
const std::string kHeading =
    "# Runs of the soak, mode and seed, of 20,000 packets. wire: every byte of every frame, with "
    "its\n"
    "# time, in both directions; outcome: completions with their times, counters.\n"
    "# Written by: build/release/tests/soak/soak --write-hashes tests/soak/soak_hashes.txt\n";

struct Hashed {
  test::PinnedRun run;
  test::FrameTrail trail;
};

// Throws Broken, for what is to be pinned must hold.
Hashed hash_seed(Options options, std::uint64_t seed) {
  options.hash = true;
  World world(options, seed);
  world.run([](std::uint64_t) {});
  return {test::pin(world.trail(), {{"outcome", world.outcome()}}), world.trail()};
}

// All runs that are pinned, by name. Runs in which a claim did not hold are printed and missing.
std::map<std::string, Hashed> hash_all(Options options) {
  options.packets = kPinnedPackets;
  std::map<std::string, Hashed> runs;
  for (const std::string& mode : mode_names()) {
    options.mode = mode;
    for (std::uint64_t seed = 1; seed <= kPinnedSeeds; ++seed) {
      const std::string name = fmt::format("{}/{}", mode, seed);
      try {
        runs[name] = hash_seed(options, seed);
      } catch (const Broken& broken) {
        fmt::print("{}: {}\n", name, broken.what());
      }
    }
  }
  return runs;
}

int compare_hashes(const Options& options) {
  auto pinned = test::read_pinned(options.compare);
  unsigned differ = 0;
  for (const auto& [name, hashed] : hash_all(options)) {
    const auto found = pinned.find(name);
    const std::string difference = found == pinned.end()
                                       ? "not in the file"
                                       : test::difference(found->second, hashed.run, hashed.trail);
    if (found != pinned.end()) pinned.erase(found);
    if (difference.empty()) continue;
    ++differ;
    fmt::print("{}: {}\n", name, difference);
  }
  for (const auto& [name, run] : pinned) fmt::print("{}: no such run, or it failed\n", name);
  if (differ == 0 && pinned.empty()) return 0;
  fmt::print(
      "All frames of one, to compare those of two builds: soak --frames --packets {} --mode "
      "MODE --seed SEED\n",
      kPinnedPackets);
  return 1;
}

// False: a run failed, and the file is as it was.
bool write_hashes(const Options& options) {
  std::map<std::string, test::PinnedRun> runs;
  for (auto& [name, hashed] : hash_all(options)) runs[name] = hashed.run;
  if (runs.size() != mode_names().size() * kPinnedSeeds) return false;
  test::write_pinned(options.write_hashes, kHeading, runs);
  return true;
}

void print_hashes(const Options& options) {
  for (std::uint64_t seed = options.seed; seed != options.seed + options.seeds; ++seed) {
    const Hashed hashed = hash_seed(options, seed);
    fmt::print("{}\n", hashed.run.line(fmt::format("{}/{}", options.mode, seed)));
  }
}

int run(int argc, char** argv) {
  Options options;
  const config::Command app{
      "Every verb and size over bad cables, in virtual time: every byte right, exactly once, in "
      "order."};
  app.option("--seed", options.seed, "first seed").shows_default();
  app.option("--seeds", options.seeds, "number of runs, with consecutive seeds")
      .within(1, 1'000'000)
      .shows_default();
  app.option("--packets", options.packets, "packets of each run, of both directions together")
      .within(std::uint64_t{1}, std::uint64_t{1} << 40)
      .shows_default();
  for (auto& [name, value, text] :
       {std::tuple<const char*, double*, const char*>{"--loss", &options.loss, "lost"},
        {"--reorder", &options.reorder, "overtaken by 1 to 8 others"},
        {"--duplicate", &options.duplicate, "repeated"},
        {"--corrupt", &options.corrupt, "damaged, by one bit"}}) {
    app.option(name, *value, fmt::format("probability that a packet is {}", text))
        .within(0.0, 0.5)
        .shows_default();
  }
  app.option("--mode", options.mode, "recovery from loss").one_of(mode_names()).shows_default();
  app.flag("!--no-progress", options.progress, "print nothing but results");
  app.flag("--hash", options.hash, "print a hash of all frames of each seed, and its trail");
  app.flag("--frames", options.frames, "the same, and all frames");
  app.option("--compare", options.compare, "run what this file has hashes of, and compare");
  app.option("--write-hashes", options.write_hashes, "write that file anew");
  if (const auto ended = config::read_command_line(app, argc, argv, "soak")) return *ended;
  try {
    if (!options.compare.empty()) return compare_hashes(options);
    if (!options.write_hashes.empty()) return write_hashes(options) ? 0 : 1;
    if (options.hash || options.frames) {
      print_hashes(options);
      return 0;
    }
  } catch (const std::runtime_error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
  return run_seeds(options);
}

}  // namespace
}  // namespace paceline::soak

int main(int argc, char** argv) { return paceline::soak::run(argc, argv); }
