#include "tools/diagnose/testbed/watching.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "dataplane/config/scenario/document.h"
#include "dataplane/config/testbed/testbed_reader.h"
#include "dataplane/driver/scenario/plugin_load.h"
#include "tools/fleet/fleet_file.h"

namespace paceline::tools {

namespace {

constexpr std::size_t kMostNoted = 8;  // hosts, each a note

Described described_testbed(config::Testbed testbed, LookFileHead head) {
  Described out;
  out.name = testbed.name;
  out.scenario = std::move(*testbed.scenario);
  out.shape = nic_shape(testbed.nic.shape);
  out.hosts = {{testbed.name, {}, {}}};
  out.head = std::move(head);
  return out;
}

Described described_fleet(const Fleet& fleet, LookFileHead head) {
  Described out;
  out.name = fleet.name;
  out.scenario = fleet.scenario;
  for (const FleetHost& host : fleet.hosts) {
    out.hosts.push_back({host.name, host.nics, host.places});
  }
  out.head = std::move(head);
  return out;
}

}  // namespace

config::Read<Described> described_by(const LookFileHead& head) {
  const std::string& source = head.source;
  config::ReaderOptions options = reader_options();
  options.overrides = head.overrides;
  const std::string folder = config::folder_of(source);
  if (head.of == "fleet") {
    auto read = read_fleet_text(head.description, source, folder, options);
    if (read.ok() && !read.value.has_fabric) {
      read.errors = {source + ": diagnosis needs a description of the fabric, [fabric]"};
    }
    if (!read.ok()) return {{}, std::move(read.errors)};
    return {described_fleet(read.value, head), {}};
  }
  auto read = config::read_testbed_text(head.description, source, folder, options);
  if (read.ok() && !read.value.scenario) {
    read.errors = {source + ": diagnosis needs emulated hosts, a testbed with [fabric]"};
  }
  if (!read.ok()) return {{}, std::move(read.errors)};
  return {described_testbed(std::move(read.value), head), {}};
}

Watching::Watching(const Described& of)
    : of_(of),
      plan_(plan_world(of.scenario, of.shape)),
      places_(of.hosts, plan_.fabric),
      evidence_(of.scenario, plan_.fabric),
      missed_(of.hosts.size()),
      why_(of.hosts.size()) {}

std::string Watching::host_says(std::size_t host, const std::string& error) const {
  return of_.head.of == "testbed" ? error : fmt::format("host {}: {}", of_.hosts[host].name, error);
}

std::vector<std::string> Watching::open(const std::vector<SightedHost>& look) {
  std::vector<std::string> errors;
  if (!plan_.error.empty()) return {fmt::format("{}: {}", of_.head.source, plan_.error)};
  for (std::size_t h = 0; h < look.size(); ++h) {
    if (!look[h].error.empty()) errors.push_back(host_says(h, look[h].error));
  }
  if (!errors.empty()) return errors;
  const std::size_t nics = look.front().host.nics.size();
  if (of_.head.of == "testbed" && nics != plan_.fabric.nics()) {
    return {fmt::format("the service has {} NICs, its testbed file {}: has the file changed since?",
                        nics, plan_.fabric.nics())};
  }
  errors = places_.open(look);
  if (errors.empty()) evidence_.look(Picos{0}, places_.sights(look));
  return errors;
}

bool Watching::add(Picos at, const std::vector<SightedHost>& look) {
  ++looks_;
  std::size_t silent = 0;
  for (std::size_t h = 0; h < look.size(); ++h) {
    if (look[h].error.empty()) continue;
    ++silent;
    ++missed_[h];
    why_[h] = look[h].error;
  }
  if (silent == look.size()) return false;
  evidence_.look(at, places_.sights(look));
  return true;
}

void Watching::finish(WatchedTestbed& out) {
  out.name = of_.name;
  for (std::size_t h = 0; h < missed_.size() && out.notes.size() < kMostNoted; ++h) {
    if (missed_[h] == 0) continue;
    out.notes.push_back(fmt::format("host {} did not answer in {} of {} looks: {}",
                                    of_.hosts[h].name, missed_[h], looks_, why_[h]));
  }
  out.evidence = evidence_.finish();
}

}  // namespace paceline::tools
