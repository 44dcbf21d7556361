// Rules of [probing].
#include <fmt/format.h>

#include "dataplane/config/scenario/checks/key_checks.h"
#include "dataplane/config/scenario/checks/scenario_checks.h"

namespace paceline::config {

namespace {

class ProbingChecks : private KeyChecks {
 public:
  using KeyChecks::KeyChecks;

  void run() {
    if (!s_.probing.enabled) {
      if (!given_.usable({"probing.enabled"})) return;
      return refuse(
          {"probing.share", "probing.paths", "probing.clock_offset", "probing.clock_drift"},
          "probing.enabled = false");
    }
    require(s_.duration != kNever, {"probing.enabled"},
            "probes never end: probing.enabled = true needs a duration");
    if (!hosts_known()) return;
    require(s_.fabric.hosts <= kMostHosts, {"probing.enabled", "fabric.hosts"},
            fmt::format("each host probes all others: allowed with probing.enabled = true are {} "
                        "hosts at most, here there are {}",
                        kMostHosts, s_.fabric.hosts));
  }

 private:
  static constexpr std::uint32_t kMostHosts = 128;
};

}  // namespace

void check_probing(const Scenario& scenario, const GivenKeys& given, const Where& start,
                   ReadContext& context) {
  ProbingChecks(scenario, given, start, context).run();
}

}  // namespace paceline::config
