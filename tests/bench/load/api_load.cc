// Load on the API of a daemon, or on a server of its own: docs/api.md has the command and figures.
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/post.hpp>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "dataplane/config/command_line.h"
#include "tests/support/api_load.h"
#include "tests/unit/daemon_api/served.h"

namespace paceline::test {
namespace {

// The processor time of a process, user and system, in seconds: fields 14 and 15 of proc(5) stat.
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

// One who listens to events all the while. A stream that ends before it is let go is a failure.
class EventListener {
 public:
  explicit EventListener(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    static constexpr std::string_view kRequest =
        "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n";
    if (path.size() < sizeof(address.sun_path)) {
      std::copy(path.begin(), path.end(), address.sun_path);
      ended_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
               ::send(fd_, kRequest.data(), kRequest.size(), MSG_NOSIGNAL) !=
                   static_cast<ssize_t>(kRequest.size());
    }
    if (!ended_) thread_ = std::thread([this] { listen(); });
  }
  EventListener(const EventListener&) = delete;
  EventListener& operator=(const EventListener&) = delete;
  ~EventListener() {
    leave();
    ::close(fd_);
  }

  void leave() {
    left_ = true;
    if (thread_.joinable()) thread_.join();
  }
  // After leave().
  bool ended() const { return ended_; }
  std::uint64_t events() const { return events_; }

 private:
  void listen() {
    std::string line;
    char piece[4096];
    while (!left_) {
      pollfd wait{fd_, POLLIN, 0};
      if (::poll(&wait, 1, 50) <= 0) continue;
      const ssize_t got = ::recv(fd_, piece, sizeof(piece), MSG_DONTWAIT);
      if (got <= 0) {
        ended_ = true;
        return;
      }
      for (ssize_t i = 0; i < got; ++i) {
        if (piece[i] != '\n') {
          line += piece[i];
          continue;
        }
        if (line.starts_with("HTTP/1.1 ") && !line.starts_with("HTTP/1.1 200")) ended_ = true;
        if (line.starts_with("data:")) ++events_;
        line.clear();
      }
    }
  }

  int fd_ = -1;
  bool ended_ = true;  // until it is connected
  std::uint64_t events_ = 0;
  std::atomic<bool> left_ = false;
  std::thread thread_;
};

// For those who put several runs together: besides the figures, all times as pairs of a bucket's
// lowest value and its count.
void print_json(const LoadResult& result, std::optional<double> processor,
                std::optional<std::uint64_t> events) {
  nlohmann::ordered_json out{{"due", result.due},
                             {"answered", result.answered},
                             {"reconnected", result.reconnected},
                             {"wrong", result.wrong}};
  auto& statuses = out["statuses"] = nlohmann::ordered_json::object();
  for (const auto& [status, count] : result.statuses) statuses[std::to_string(status)] = count;
  if (events) out["events"] = *events;
  if (processor) out["processor_seconds"] = *processor;
  auto& times = out["nanoseconds"] = nlohmann::ordered_json::array();
  result.nanoseconds.for_each_bucket([&](std::uint64_t lowest, std::uint64_t, std::uint64_t count) {
    times.push_back({lowest, count});
  });
  std::printf("%s\n", out.dump().c_str());
}

int exit_code(const LoadResult& result) {
  return result.wrong.empty() && result.lost() == 0 && result.failed() == 0 ? 0 : 1;
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
  return exit_code(result);
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

struct OtherServer {
  int pid = 0;
  bool events = false;
  bool json = false;
};

int load_other(LoadPlan plan, const OtherServer& other) {
  if (plan.targets.empty()) plan.targets = {"/v1/openapi.json"};
  std::optional<EventListener> listener;
  if (other.events) listener.emplace(plan.socket);
  const std::optional<double> before = other.pid > 0 ? processor_seconds(other.pid) : std::nullopt;
  LoadResult result = run_load(plan);
  std::optional<double> used = before ? processor_seconds(other.pid) : std::nullopt;
  if (used) *used -= *before;
  std::optional<std::uint64_t> events;
  if (listener) {
    listener->leave();
    events = listener->events();
    if (listener->ended() && result.wrong.empty()) result.wrong = "the stream of events ended";
  }
  if (other.json) {
    print_json(result, used, events);
    return exit_code(result);
  }
  const int code = print(plan, result, used);
  if (events) std::printf("events: %llu\n", static_cast<unsigned long long>(*events));
  return code;
}

}  // namespace
}  // namespace paceline::test

int main(int argc, char** argv) {
  paceline::test::LoadPlan plan;
  double seconds = 60;
  paceline::test::OtherServer other;
  const paceline::config::Command app("Requests at a steady rate to a daemon's API");
  app.option("--socket", plan.socket, "of the daemon; a server of its own where not given");
  app.option("--target", plan.targets, "path and query of a GET; several are asked in turn");
  app.option("--clients", plan.clients).shows_default().within(1, 256);
  app.option("--rate", plan.per_second, "requests a second, of all")
      .shows_default()
      .within(1, 100000);
  app.option("--for", seconds, "seconds").shows_default().within(0.1, 3600.0);
  app.option("--pid", other.pid, "of the daemon: its processor time is reported");
  app.flag("--events", other.events, "one more client listens to /v1/events of the daemon");
  app.flag("--json", other.json, "of the daemon: print figures and all times as JSON");
  if (const auto ended = paceline::config::read_command_line(app, argc, argv, "api_load"))
    return *ended;
  plan.length = std::chrono::milliseconds(static_cast<long>(seconds * 1000));
  return plan.socket.empty() ? paceline::test::load_own(plan)
                             : paceline::test::load_other(plan, other);
}
