// The soak: every verb and size over a cable that loses, repeats, reorders and damages packets, for
// as many packets and seeds as asked for. docs/transport.md says what it claims.
#include <fmt/format.h>

#include <unistd.h>
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <string>

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
    fmt::print("seed {}: FAILED ({}): {}\nreproduce: {}\n", seed, description, broken.what(),
               reproduction(options, seed));
    std::fflush(stdout);
    return false;
  }
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app{
      "Every verb and size over bad cables, in virtual time: every byte right, exactly once, in "
      "order."};
  app.add_option("--seed", options.seed, "first seed")->capture_default_str();
  app.add_option("--seeds", options.seeds, "number of runs, with consecutive seeds")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--packets", options.packets, "packets of each run, of both directions together")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40))
      ->capture_default_str();
  for (auto& [name, value, text] :
       {std::tuple<const char*, double*, const char*>{"--loss", &options.loss, "lost"},
        {"--reorder", &options.reorder, "overtaken by 1 to 8 others"},
        {"--duplicate", &options.duplicate, "repeated"},
        {"--corrupt", &options.corrupt, "damaged, by one bit"}}) {
    app.add_option(name, *value, fmt::format("probability that a packet is {}", text))
        ->check(CLI::Range(0.0, 0.5))
        ->capture_default_str();
  }
  app.add_option("--mode", options.mode, "recovery from loss")
      ->check(CLI::IsMember(mode_names()))
      ->capture_default_str();
  app.add_flag("!--no-progress", options.progress, "print nothing but results");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  Progress progress(options);
  for (std::uint64_t seed = options.seed; seed != options.seed + options.seeds; ++seed) {
    if (!run_seed(options, seed, progress)) return 1;
  }
  return 0;
}

}  // namespace
}  // namespace paceline::soak

int main(int argc, char** argv) { return paceline::soak::run(argc, argv); }
