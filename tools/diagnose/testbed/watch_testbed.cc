#include "tools/diagnose/watch_testbed.h"

#include <poll.h>

#include <fmt/format.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "dataplane/config/scenario/document.h"
#include "dataplane/driver/scenario/plugin_load.h"
#include "tools/cli/cli.h"
#include "tools/diagnose/testbed/fleet_looks.h"
#include "tools/diagnose/testbed/local_looks.h"
#include "tools/diagnose/testbed/look_file.h"
#include "tools/diagnose/testbed/watching.h"
#include "tools/service_link/runtime_folder.h"
#include "tools/service_link/service_absence.h"
#include "tools/service_link/service_request.h"

namespace paceline::tools {

namespace {

using Json = nlohmann::json;
using Progress = std::function<void(double, double)>;

constexpr int kLooks = 64;        // windows of the evidence
constexpr double kAllSilent = 5;  // seconds without any host: there is nothing to watch

// What the service at a socket runs.
config::Read<Described> testbed_of(const Json& status) {
  const Json from = status.is_object() ? status.value("testbed", Json()) : Json();
  LookFileHead head{"testbed", from.is_object() ? from.value("file", "") : "", "", {}};
  if (head.source.empty()) {
    return {{},
            {"the service does not say which testbed it runs: it is of another version, or of "
             "another user"}};
  }
  head.overrides = from.value("set", std::vector<std::string>{});
  auto text = config::read_text_file(head.source, config::kLongestDocument);
  if (!text.ok()) return {{}, std::move(text.errors)};
  head.description = std::move(text.value);
  return described_by(head);
}

// Waits until then, by the seconds since `begin`; returns what they are.
double wait_until(double due, double begin) {
  double now = wall_seconds() - begin;
  for (; now < due && !Interrupt::flag(); now = wall_seconds() - begin) {
    ::poll(nullptr, 0, std::clamp(static_cast<int>((due - now) * 1000) + 1, 1, 50));
  }
  return now;
}

// Takes looks until the time is over.
class Watch {
 public:
  Watch(const Described& of, HostLooks& looks, const WatchRequest& request)
      : of_(of),
        looks_(looks),
        record_(request.record),
        seconds_(static_cast<double>(request.lasts.count) / 1e12),
        watching_(of) {}

  WatchedTestbed run(const Progress& progress) {
    WatchedTestbed out;
    out.exit_code = kExitFailed;
    std::vector<SightedHost> look = looks_.take(seconds_ / kLooks);
    const double begin = wall_seconds();
    out.interrupted = Interrupt::flag();
    if (!out.interrupted) out.errors = watching_.open(look);
    if (out.errors.empty()) keep(head_line(of_.head));
    if (out.errors.empty()) keep(look_line(Picos{0}, look));
    double answered = 0;  // when a host last answered
    for (int number = 1; number <= kLooks && out.errors.empty() && !out.interrupted;) {
      const double now = wait_until(seconds_ * number / kLooks, begin);
      progress(std::min(1.0, now / seconds_), std::max(0.0, seconds_ - now));
      if (!Interrupt::flag()) look = looks_.take(seconds_ / kLooks);
      out.interrupted = Interrupt::flag();
      if (out.interrupted) break;
      const Picos at{static_cast<std::int64_t>(now * 1e12)};
      if (watching_.add(at, look)) {
        answered = now;
      } else if (!looks_.may_return() || now - answered > kAllSilent) {
        for (std::size_t h = 0; h < look.size(); ++h) {
          out.errors.push_back(watching_.host_says(h, look[h].error));
        }
      }
      keep(look_line(at, look));
      ++number;
      // Silent hosts make a look late: looks whose time is over by then would be too short.
      const bool all = std::all_of(look.begin(), look.end(),
                                   [](const SightedHost& host) { return host.error.empty(); });
      const double passed = std::min((wall_seconds() - begin) / seconds_, 1.0) * kLooks;
      if (!all) number = std::max(number, std::min(static_cast<int>(passed), kLooks));
    }
    if (out.errors.empty() && !kept()) {
      out.errors = {fmt::format("{}: {}", record_, std::strerror(errno))};
    }
    if (!out.errors.empty() || out.interrupted) return out;
    watching_.finish(out);
    out.exit_code = 0;
    return out;
  }

 private:
  void keep(const std::string& line) {
    if (record_.empty()) return;
    if (!file_.is_open()) file_.open(record_, std::ios::binary | std::ios::trunc);
    file_ << line << '\n' << std::flush;
  }
  bool kept() {
    if (record_.empty()) return true;
    file_.flush();
    return file_.good();
  }

  const Described& of_;
  HostLooks& looks_;
  const std::string& record_;
  double seconds_;
  Watching watching_;
  std::ofstream file_;
};

WatchedTestbed failed(int code, std::vector<std::string> errors) {
  WatchedTestbed out;
  out.exit_code = code;
  out.errors = std::move(errors);
  return out;
}

WatchedTestbed watch_local(const WatchRequest& request, const Progress& progress) {
  const std::string socket = socket_to_reach(request.name, request.socket);
  const auto absent = [&](int code, const std::string& why) {
    return failed(kExitFailed,
                  {service_absence(socket, code, why, options_to_start(request.name, socket))});
  };
  const ServiceStatus status = service_status(socket);
  if (!status.error.empty()) return absent(status.code, status.error);
  const auto of = testbed_of(Json::parse(status.json, nullptr, false));
  if (!of.ok()) return failed(kExitFailed, of.errors);
  std::string wrong;
  int code = 0;
  const auto looks = local_looks(socket, wrong, code);
  if (looks == nullptr) return absent(code, wrong);
  return Watch(of.value, *looks, request).run(progress);
}

WatchedTestbed watch_fleet(const WatchRequest& request, const Progress& progress) {
  const auto fleet = read_fleet_file(request.fleet, reader_options());
  if (!fleet.ok()) return failed(kExitBadInput, fleet.errors);
  auto text = config::read_text_file(request.fleet, config::kLongestDocument);
  if (!text.ok()) return failed(kExitBadInput, text.errors);
  const auto of = described_by({"fleet", request.fleet, std::move(text.value), {}});
  if (!of.ok()) return failed(kExitBadInput, of.errors);
  FleetLooks looks(fleet.value.hosts);
  return Watch(of.value, looks, request).run(progress);
}

WatchedTestbed replay(const WatchRequest& request) {
  std::ifstream file(request.replay, std::ios::binary);
  std::string line;
  const auto bad = [&](std::size_t number, const std::string& why) {
    return failed(kExitBadInput, {fmt::format("{}:{}: {}", request.replay, number, why)});
  };
  if (!file.is_open()) {
    return failed(kExitBadInput, {fmt::format("{}: {}", request.replay, std::strerror(errno))});
  }
  LookFileHead head;
  std::getline(file, line);
  if (const std::string wrong = read_head_line(line, head); !wrong.empty()) return bad(1, wrong);
  const auto of = described_by(head);
  if (!of.ok()) return bad(1, of.errors.front());
  Watching watching(of.value);
  Picos last{-1};
  std::size_t number = 1;
  while (std::getline(file, line)) {
    ++number;
    KeptLook look;
    std::string wrong = read_look_line(line, of.value.hosts.size(), look);
    if (wrong.empty() && look.at <= last) wrong = "it is not later than the look before";
    if (!wrong.empty()) return bad(number, wrong);
    if (number == 2) {
      const auto errors = watching.open(look.hosts);
      if (!errors.empty()) return bad(number, errors.front());
    } else {
      watching.add(look.at, look.hosts);
    }
    last = look.at;
  }
  if (number < 3) return bad(number, "two looks are the least");
  WatchedTestbed out;
  watching.finish(out);
  return out;
}

}  // namespace

WatchedTestbed watch_testbed(const WatchRequest& request, const Progress& progress) {
  if (!request.replay.empty()) return replay(request);
  return request.fleet.empty() ? watch_local(request, progress) : watch_fleet(request, progress);
}

}  // namespace paceline::tools
