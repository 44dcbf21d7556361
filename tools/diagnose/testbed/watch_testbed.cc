#include "tools/diagnose/watch_testbed.h"

#include <poll.h>

#include <fmt/format.h>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "dataplane/config/testbed/testbed_reader.h"
#include "dataplane/driver/scenario/plugin_load.h"
#include "dataplane/service/protocol/control_protocol.h"
#include "tools/cli/cli.h"
#include "tools/diagnose/testbed/nic_status.h"
#include "tools/diagnose/testbed/testbed_evidence.h"
#include "tools/service_link/runtime_folder.h"
#include "tools/service_link/service_absence.h"
#include "tools/service_link/service_request.h"
#include "tools/top/host_look.h"

namespace paceline::tools {

namespace {

using Json = nlohmann::json;

constexpr int kLooks = 64;      // windows of the evidence
constexpr int kPatience = 100;  // times 10 ms

config::Read<config::Testbed> testbed_of(const Json& status) {
  const Json from = status.value("testbed", Json());
  const std::string file = from.is_object() ? from.value("file", "") : "";
  if (file.empty()) {
    return {{},
            {"the service does not say which testbed it runs: it is of another version, or of "
             "another user"}};
  }
  config::ReaderOptions options = reader_options();
  options.overrides = from.value("set", std::vector<std::string>{});
  auto read = config::read_testbed_file(file, options);
  if (read.ok() && !read.value.scenario) {
    read.errors = {file + ": diagnosis needs emulated hosts, a testbed with [fabric]"};
  }
  return read;
}

}  // namespace

WatchedTestbed watch_testbed(const WatchRequest& request,
                             const std::function<void(double, double)>& progress) {
  WatchedTestbed out;
  out.exit_code = kExitFailed;
  const std::string socket = socket_to_reach(request.name, request.socket);
  const auto absent = [&](int code, const std::string& why) {
    out.errors = {service_absence(socket, code, why, options_to_start(request.name, socket))};
    return out;
  };
  const auto ask = [&](Json& status) {
    ServiceStatus got = service_status(socket);
    if (got.error.empty()) status = Json::parse(got.json, nullptr, false);
    return got;
  };
  Json status;
  if (const ServiceStatus got = ask(status); !got.error.empty()) return absent(got.code, got.error);
  const auto testbed = testbed_of(status);
  if (!testbed.ok()) {
    out.errors = testbed.errors;
    return out;
  }
  HostLook host;
  int code = 0;
  const std::string wrong = host.open(service::control_socket_beside(socket), code);
  if (!wrong.empty()) return absent(code, wrong);
  out.name = testbed.value.name;
  TestbedEvidence evidence(testbed.value);

  const double begin = wall_seconds();
  const double seconds = static_cast<double>(request.lasts.count) / 1e12;
  HostSample sample;
  for (int number = 0; number <= kLooks; ++number) {
    const double due = seconds * number / kLooks;
    double now = wall_seconds() - begin;
    for (; now < due && !Interrupt::flag(); now = wall_seconds() - begin) {
      ::poll(nullptr, 0, std::clamp(static_cast<int>((due - now) * 1000) + 1, 1, 50));
    }
    if (Interrupt::flag()) {
      out.interrupted = true;
      return out;
    }
    progress(std::min(1.0, now / seconds), std::max(0.0, seconds - now));
    std::string lost = host.take(sample);
    // A worker that the machine holds up in the middle of a writing comes back.
    for (int again = 0; again < kPatience && !lost.empty() && !Interrupt::flag(); ++again) {
      ::poll(nullptr, 0, 10);
      lost = host.take(sample);
    }
    if (lost.empty()) lost = ask(status).error;
    const auto nics = nics_of(status);
    if (lost.empty() && (sample.nics.size() != evidence.nics() || nics.size() != evidence.nics())) {
      lost =
          fmt::format("the service has {} NICs, its testbed file {}: has the file changed since?",
                      sample.nics.size(), evidence.nics());
    }
    if (!lost.empty()) {
      out.errors = {lost};
      return out;
    }
    evidence.look(Picos{static_cast<std::int64_t>(now * 1e12)}, sample, nics);
  }
  out.evidence = evidence.finish();
  out.exit_code = 0;
  return out;
}

}  // namespace paceline::tools
