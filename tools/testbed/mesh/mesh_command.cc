#include "tools/testbed/mesh/mesh_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "dataplane/config/toml/quantity.h"
#include "tools/cli/cli.h"
#include "tools/testbed/mesh/mesh_fleet.h"
#include "tools/testbed/mesh/mesh_services.h"
#include "tools/testbed/mesh/mesh_text.h"

namespace paceline::tools {

namespace {

constexpr std::size_t kUsuallyListed = 40;

struct MeshOptions {
  std::vector<std::string> names;
  std::vector<std::string> sockets;
  std::vector<std::string> clocks;
  std::string fleet;  // file; empty: services of this machine
  double seconds = 3;
  double rate = 20;
  double share = 0.0005;
  unsigned paths = 1;
  unsigned traffic_class = 3;
  bool all = false;
  bool json = false;
};

// "1ms", "-20us": in ns.
double signed_time(const std::string& text, const std::string& clock,
                   std::vector<std::string>& errors) {
  const bool sign = text.starts_with('-') || text.starts_with('+');
  const auto time = config::parse_time(sign ? std::string_view(text).substr(1) : text);
  if (!time.ok()) errors.push_back(fmt::format("--clock {}: {}: {}", clock, text, time.error));
  const double ns = static_cast<double>(time.value.count) * 1e-3;
  return text.starts_with('-') ? -ns : ns;
}

// "h1=1ms,50ppm,-20us@2s"
MeshJson clock_of(const std::string& clock, std::vector<std::string>& errors) {
  const std::size_t equals = clock.find('=');
  if (equals == std::string::npos || equals == 0) {
    errors.push_back(fmt::format(
        "--clock {}: expected NIC=OFFSET, DRIFTppm or JUMP@AFTER, with commas between", clock));
    return {};
  }
  MeshJson out{{"nic", clock.substr(0, equals)}};
  for (std::size_t from = equals + 1; from <= clock.size();) {
    const std::size_t comma = std::min(clock.find(',', from), clock.size());
    const std::string part = clock.substr(from, comma - from);
    from = comma + 1;
    const std::size_t at = part.find('@');
    if (part.ends_with("ppm")) {
      const bool minus = part.starts_with('-');
      const std::size_t sign = minus || part.starts_with('+') ? 1 : 0;
      const auto ppm = config::parse_in_unit(part.substr(sign, part.size() - 3 - sign), "1");
      if (!ppm.ok()) errors.push_back(fmt::format("--clock {}: {}: {}", clock, part, ppm.error));
      out["drift_ppb"] = (minus ? -1e3 : 1e3) * ppm.value;
    } else if (at != std::string::npos) {
      out["jump_ns"] = signed_time(part.substr(0, at), clock, errors);
      out["jump_after_us"] = signed_time(part.substr(at + 1), clock, errors) * 1e-3;
    } else {
      out["offset_ns"] = signed_time(part, clock, errors);
    }
  }
  return out;
}

class Mesh {
 public:
  explicit Mesh(const MeshOptions& options) : options_(options) {}

  int run() {
    std::vector<std::string> errors;
    std::vector<MeshJson> clocks;
    for (const std::string& clock : options_.clocks) clocks.push_back(clock_of(clock, errors));
    if (!errors.empty()) return report_errors(errors);
    int code = kExitGood;
    const Interrupt interrupt;
    if (options_.fleet.empty()) {
      hosts_ = std::make_unique<MeshServices>(options_.names, options_.sockets);
    } else {
      hosts_ = std::make_unique<MeshFleet>(options_.fleet, options_.seconds);
    }
    if (!hosts_->connect(code) || !open(clocks, code) || !begin(code)) {
      return Interrupt::flag() ? kExitInterrupted : code;
    }
    const double from = wall_seconds();
    while (wall_seconds() - from < options_.seconds && !Interrupt::flag()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    mesh_["seconds"] = wall_seconds() - from;
    if (!collect(code)) return code;
    if (options_.json) {
      fmt::print("{}\n", mesh_.dump(2, ' ', true, MeshJson::error_handler_t::replace));
    } else {
      fmt::print("{}", mesh_text(mesh_, options_.all ? mesh_["pairs"].size() : kUsuallyListed));
    }
    if (Interrupt::flag()) return kExitInterrupted;
    if (answered_ != 0 || mesh_["pairs"].empty()) return kExitGood;
    report_errors({"no probe was answered"});
    return kExitFailed;
  }

 private:
  // A clock belongs to the first service that has a NIC of this name.
  bool open(std::vector<MeshJson> clocks, int& code) {
    std::vector<MeshJson> requests;
    for (const MeshHost& host : hosts_->hosts()) {
      MeshJson& request = requests.emplace_back();
      request["op"] = "probe_open";
      for (MeshJson& clock : clocks) {
        const bool here = clock.is_object() && std::find(host.nics.begin(), host.nics.end(),
                                                         clock.value("nic", "")) != host.nics.end();
        if (here) request["clocks"].push_back(std::exchange(clock, nullptr));
      }
    }
    const auto opened = hosts_->ask(requests, code);
    if (!opened) return false;
    for (std::size_t h = 0; h < opened->size(); ++h) {
      for (const MeshJson& nic : (*opened)[h].at("nics")) {
        const std::string name = hosts_->hosts()[h].label + nic.value("name", "");
        names_[nic.value("address", "")] = name;
        mesh_["nics"].push_back(name);
        peers_.push_back({{"address", nic.at("address")},
                          {"qp_number", nic.at("qp_number")},
                          {"qkey", nic.at("qkey")}});
      }
    }
    for (const MeshJson& clock : clocks) {
      if (clock.is_null()) continue;
      code = report_errors({fmt::format("--clock: there is no NIC {}", clock.value("nic", ""))});
      return false;
    }
    if (names_.size() == peers_.size()) return true;
    code = report_errors({"two NICs have the same address: these hosts are not one network"});
    return false;
  }

  // The same request to all.
  std::optional<std::vector<MeshJson>> ask_all(const MeshJson& request, int& code) {
    return hosts_->ask(std::vector<MeshJson>(hosts_->hosts().size(), request), code);
  }

  bool begin(int& code) {
    std::random_device random;
    const auto begun = ask_all({{"op", "probe_begin"},
                                {"session", random() & 0x7FFF'FFFFU},
                                {"peers", peers_},
                                {"rate", options_.rate},
                                {"share", options_.share},
                                {"paths", options_.paths},
                                {"class", options_.traffic_class}},
                               code);
    if (!begun) return false;
    for (const MeshJson& answer : *begun) mesh_["interval_us"] = answer.at("interval_us");
    mesh_["class"] = options_.traffic_class;
    mesh_["paths"] = options_.paths;
    return true;
  }

  bool collect(int& code) {
    mesh_["clocks"] = mesh_["pairs"] = MeshJson::array();
    const auto got = ask_all({{"op", "probes"}}, code);
    if (!got) return false;
    for (std::size_t h = 0; h < got->size(); ++h) {
      for (const MeshJson& nic : (*got)[h].at("nics")) {
        const std::string from = hosts_->hosts()[h].label + nic.value("name", "");
        MeshJson clock = nic.at("clock");
        clock["nic"] = from;
        mesh_["clocks"].push_back(std::move(clock));
        for (const MeshJson& peer : nic.at("peers")) {
          MeshJson pair{{"from", from}, {"to", names_[peer.value("address", "")]}};
          pair.update(peer);
          pair.erase("address");
          answered_ += peer.value("answered", std::uint64_t{0});
          mesh_["pairs"].push_back(std::move(pair));
        }
      }
    }
    return true;
  }

  const MeshOptions& options_;
  std::unique_ptr<MeshHosts> hosts_;
  std::map<std::string, std::string> names_;  // by address
  MeshJson peers_ = MeshJson::array();
  MeshJson mesh_{{"schema", 1}, {"kind", "paceline mesh"}, {"nics", MeshJson::array()}};
  std::uint64_t answered_ = 0;
};

}  // namespace

void add_mesh_command(const config::Command& app, int& exit_code) {
  auto options = std::make_shared<MeshOptions>();
  const config::Command command =
      app.subcommand("mesh",
                     "Probe between all NICs of running testbeds, or of "
                     "a fleet: delays, losses and clocks of each "
                     "pair");
  const config::Option name =
      command
          .option("--name", options->names,
                  "a testbed, as given to `paceline testbed up` (repeatable; default: where "
                  "PACELINE_SOCKET points, "
                  "else default)")
          .one_by_one();
  const config::Option socket =
      command.option("--socket", options->sockets, "a service by its socket (repeatable)")
          .one_by_one();
  const config::Option fleet =
      command
          .option("--fleet", options->fleet,
                  "the hosts of this file instead, by their pacelined (paceline diagnose --help); "
                  "its tokens must have the right to write")
          .type("FILE.toml")
          .excludes(name)
          .excludes(socket);
  command.option("--seconds", options->seconds, "how long").within(0.1, 3600.0).shows_default();
  command.option("--rate", options->rate, "the most probes per second for each pair")
      .within(0.01, 1e5)
      .shows_default();
  command
      .option("--share", options->share,
              "the largest share of a link's rate for probes and answers")
      .within(1e-9, 0.01)
      .shows_default();
  command.option("--paths", options->paths, "UDP source ports to take in turn, from 49152 on")
      .within(1, 64)
      .shows_default();
  command.option("--class", options->traffic_class, "traffic class that is measured")
      .within(0, 6)
      .shows_default();
  command
      .option("--clock", options->clocks,
              "make the clock of a NIC wrong, to see what is found: h1=1ms,50ppm sets it 1 ms "
              "ahead and 50 ppm fast, h1=-20us@2s sets it back after 2 s (repeatable)")
      .type("NIC=OFF")
      .excludes(fleet)
      .one_by_one();
  command.flag("--all", options->all, "list all pairs, not only the slowest");
  command.flag("--json", options->json, "everything, with each path, for machines");
  command.footer(
      "A probe is a datagram of 64 bytes in the class of data. The far NIC's service answers it "
      "and\n"
      "tells when it came and when the answer left. This splits a round trip in two:\n"
      "  fabric  the time in links, switches and queues, both ways\n"
      "  host    the time that the far service took to answer\n"
      "Every second probe is in the class of control packets, which waits in no queue: from the\n"
      "quickest of these, clocks are compared.\n"
      "  clock   the far clock less the near one; +- half of the least round trip is certain\n"
      "  drift   how fast the clocks drift apart; set: how often a clock was set meanwhile\n"
      "  there, back  delays of one way, which need the clocks\n"
      "A slow fabric with quick hosts is a queue or a link; one slow row and column is a host.\n"
      "Examples:\n"
      "  paceline testbed up configs/testbeds/incast.toml && paceline mesh\n"
      "  paceline mesh --seconds 10 --paths 8 --json\n"
      "  paceline mesh --name a --name b      two testbeds that reach each other\n"
      "  paceline mesh --fleet fleet.toml     hosts behind pacelined\n"
      "  paceline mesh --clock h1=1ms,50ppm   a clock that is off\n"
      "Exit status: 0 good, 1 no testbed or no answer, 2 bad input, 130 interrupted (results so\n"
      "far are printed).");
  command.callback([options, &exit_code] { exit_code = Mesh(*options).run(); });
}

}  // namespace paceline::tools
