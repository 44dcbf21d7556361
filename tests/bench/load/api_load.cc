// Load on the API of a daemon, or on a server of its own: docs/api.md has the command and figures.
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/asio/post.hpp>
#include <cstdio>
#include <fstream>
#include <optional>
#include <thread>

#include "tests/support/api_load.h"
#include "tests/unit/daemon_api/served.h"

namespace paceline::test {
namespace {

// Of a process, user and system, in seconds; the fields 14 and 15 of proc(5) stat.
std::optional<double> processor_seconds(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::size_t behind = text.rfind(')');
  if (behind == std::string::npos) return std::nullopt;
  unsigned long user = 0;
  unsigned long system = 0;
  if (std::sscanf(text.c_str() + behind + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
                  &user, &system) != 2) {
    return std::nullopt;
  }
  return static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

double thread_seconds(std::thread& thread) {
  clockid_t clock{};
  timespec time{};
  if (::pthread_getcpuclockid(thread.native_handle(), &clock) != 0) return 0;
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

int print(const LoadPlan& plan, const LoadResult& result, std::optional<double> processor) {
  const auto at = [&](double q) {
    return static_cast<double>(result.nanoseconds.quantile(q)) / 1e6;
  };
  std::printf("%u clients, %u requests/s for %.1f s\n", plan.clients, plan.per_second,
              static_cast<double>(plan.length.count()) / 1000);
  std::printf("due %llu, answered %llu, lost %llu, reconnected %llu\n",
              static_cast<unsigned long long>(result.due),
              static_cast<unsigned long long>(result.answered),
              static_cast<unsigned long long>(result.lost()),
              static_cast<unsigned long long>(result.reconnected));
  for (const auto& [status, count] : result.statuses) {
    std::printf("status %u: %llu\n", status, static_cast<unsigned long long>(count));
  }
  std::printf("ms from due to answered: p50 %.3f, p99 %.3f, p99.9 %.3f, most %.3f\n", at(0.5),
              at(0.99), at(0.999), at(1.0));
  if (processor) {
    std::printf(
        "processor of the server: %.2f s, %.1f us a request\n", *processor,
        *processor * 1e6 / static_cast<double>(std::max<std::uint64_t>(1, result.answered)));
  }
  if (!result.wrong.empty()) std::fprintf(stderr, "api_load: %s\n", result.wrong.c_str());
  return result.wrong.empty() && result.lost() == 0 && result.failed() == 0 ? 0 : 1;
}

int load_own(LoadPlan plan) {
  Served served;
  if (!served.wrong.empty()) {
    std::fprintf(stderr, "api_load: %s\n", served.wrong.c_str());
    return 2;
  }
  std::thread thread([&] { served.context.run(); });
  plan.socket = served.path;
  if (plan.targets.empty()) plan.targets = {"/v1/nics?limit=7", "/metrics"};
  const LoadResult result = run_load(plan);
  const double used = thread_seconds(thread);
  net::post(served.context, [&] { served.server->stop(); });
  thread.join();
  return print(plan, result, used);
}

int load_other(LoadPlan plan, int pid) {
  if (plan.targets.empty()) plan.targets = {"/v1/openapi.json"};
  const std::optional<double> before = pid > 0 ? processor_seconds(pid) : std::nullopt;
  const LoadResult result = run_load(plan);
  std::optional<double> used = before ? processor_seconds(pid) : std::nullopt;
  if (used) *used -= *before;
  return print(plan, result, used);
}

}  // namespace
}  // namespace paceline::test

int main(int argc, char** argv) {
  paceline::test::LoadPlan plan;
  double seconds = 60;
  int pid = 0;
  CLI::App app("Requests at a steady rate to a daemon's API");
  app.add_option("--socket", plan.socket, "of the daemon; a server of its own where not given");
  app.add_option("--target", plan.targets, "path and query of a GET; several are asked in turn");
  app.add_option("--clients", plan.clients)->capture_default_str()->check(CLI::Range(1, 256));
  app.add_option("--rate", plan.per_second, "requests a second, of all")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  app.add_option("--for", seconds, "seconds")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 3600.0));
  app.add_option("--pid", pid, "of the daemon: its processor time is reported");
  CLI11_PARSE(app, argc, argv);
  plan.length = std::chrono::milliseconds(static_cast<long>(seconds * 1000));
  return plan.socket.empty() ? paceline::test::load_own(plan)
                             : paceline::test::load_other(plan, pid);
}
