#include "tools/testbed/mesh/mesh_fleet.h"

#include <fmt/format.h>

#include <utility>

#include "dataplane/driver/scenario/plugin_load.h"
#include "tools/cli/cli.h"

namespace paceline::tools {

namespace {

constexpr auto kPatience = std::chrono::seconds(20);
constexpr auto kEndPatience = std::chrono::seconds(2);
constexpr double kMargin = 60;  // seconds after which hosts end it without being told to

}  // namespace

MeshFleet::~MeshFleet() {
  if (!lines_) return;
  std::vector<FleetLines::Request> requests(opened_.size());
  for (std::size_t i = 0; i < opened_.size(); ++i) {
    if (opened_[i]) requests[i] = {"DELETE", "/v1/probes", {}, kEndPatience};
  }
  lines_->ask(std::move(requests));
}

bool MeshFleet::connect(int& code) {
  auto read = read_fleet_file(file_, reader_options());
  if (!read.ok()) {
    code = report_errors(read.errors);
    return false;
  }
  fleet_ = std::move(read.value);
  for (const FleetHost& host : fleet_.hosts) {
    hosts_.push_back({fleet_.hosts.size() > 1 ? host.name + ":" : "", {}});
  }
  opened_.resize(fleet_.hosts.size());
  lines_.emplace(fleet_.hosts);
  return true;
}

FleetLines::Request MeshFleet::request_of(const MeshJson& request) const {
  const std::string op = request.value("op", "");
  if (op == "probes") return {"GET", "/v1/probes", {}, kPatience};
  if (op == "probe_open")
    return {"POST", "/v1/probes", {{"seconds", seconds_ + kMargin}}, kPatience};
  daemon::Json body = request;
  body.erase("op");
  return {"PUT", "/v1/probes", std::move(body), kPatience};
}

std::optional<std::vector<MeshJson>> MeshFleet::ask(const std::vector<MeshJson>& requests,
                                                    int& code) {
  std::vector<FleetLines::Request> asked;
  for (const MeshJson& request : requests) asked.push_back(request_of(request));
  const bool opens = asked.front().method == "POST";
  const std::vector<daemon::Answer> answers = lines_->ask(std::move(asked));
  std::vector<std::string> errors;
  std::vector<MeshJson> out;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const std::string wrong = answers[i].complaint();
    if (opens) opened_[i] = wrong.empty();
    if (!wrong.empty()) errors.push_back(fmt::format("host {}: {}", fleet_.hosts[i].name, wrong));
    out.emplace_back(answers[i].body);
  }
  if (errors.empty()) return out;
  report_errors(errors);
  code = kExitFailed;
  return std::nullopt;
}

}  // namespace paceline::tools
