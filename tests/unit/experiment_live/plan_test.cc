#include <catch2/catch.hpp>
#include <string>

#include "cc/registry.h"
#include "control/experiment/live/plan/moment.h"
#include "control/experiment/live/plan/plan_reader.h"
#include "control/experiment/live/plan/schedule.h"
#include "dataplane/config/sha256.h"

using namespace paceline;
using namespace paceline::experiment::live;

namespace {

config::Read<Plan> read(const std::string& text) {
  return read_plan_text(text, "plan.toml", cc::algorithms());
}

const std::string kArms = R"(
[[arm]]
name = "champion"
algorithm = "dcqcn"
profile = "paper"
[[arm]]
name = "candidate"
algorithm = "cadence"
fallback = "dcqcn"
)";

// The least there is.
const std::string kTop = "schema = 1\nname = \"a\"\nseed = 7\ndesign = \"switchback\"\n";
const std::string kTiming = "[timing]\nfct_p999 = \"2ms\"\n";
const std::string kLeast = kTop + kArms + kTiming;

std::string only_error(const std::string& text) {
  const auto plan = read(text);
  if (plan.errors.size() != 1) {
    std::string all;
    for (const std::string& e : plan.errors) all += e + "\n";
    return std::to_string(plan.errors.size()) + " errors: " + all;
  }
  return plan.errors[0];
}

}  // namespace

TEST_CASE("the least plan: wash-out, block and hold follow from what was measured") {
  const auto plan = read(kLeast);
  REQUIRE(plan.errors == std::vector<std::string>{});
  const Plan& p = plan.value;
  CHECK(p.washout == picos_from_micros(10'000));  // 5 x 2 ms
  CHECK(p.block == picos_from_micros(100'000));
  CHECK(p.hold == picos_from_micros(200'000));
  CHECK(p.pairs_min == 12);
  CHECK(p.primary == BlockMetric::log_slowdown);
  CHECK(p.soft.size() == 6);
  CHECK(p.clusters.size() == 1);
  CHECK(p.arms[1].cc.algorithm == "cadence");
  CHECK_FALSE(is_null_experiment(p));
}

TEST_CASE("each source of carry-over can be the one that sets the wash-out") {
  Timing t;
  t.rtt = picos_from_micros(100);
  CHECK(washout_for(t) == picos_from_micros(1000));
  t.iteration = picos_from_micros(5000);
  CHECK(washout_for(t) == picos_from_micros(5000));
  CHECK(block_for(washout_for(t), t) == picos_from_micros(150'000));  // 30 iterations
  t.lease = picos_from_micros(2000);
  CHECK(washout_for(t) == picos_from_micros(6000));
  t.fct_p999 = picos_from_micros(2000);
  CHECK(washout_for(t) == picos_from_micros(10'000));
}

TEST_CASE("pairs at most follow from the spread of an A/A run") {
  const auto plan = read(kLeast + "[pairs]\nexpected_sd = 0.085\nminimum_effect = 0.02\n");
  REQUIRE(plan.ok());
  CHECK(plan.value.pairs_max == Approx(2 * 146).margin(8));
}

TEST_CASE("a plan may say when its first block begins; its digest covers that") {
  const auto plan = read(kLeast + "[blocks]\nbegin = \"2026-12-01T08:00:00Z\"\n");
  REQUIRE(plan.ok());
  CHECK(plan.value.begin_unix_ns == 1'796'112'000'000'000'000);
  CHECK(plan.value.pairs_max == plan.value.pairs_min);
  CHECK(plan_text(plan.value).find("\"begin\": \"2026-12-01T08:00:00Z\"") != std::string::npos);
  CHECK(plan_text(read(kLeast).value).find("begin") == std::string::npos);
  CHECK(unix_ns_of("1970-01-01T00:00:01Z") == 1'000'000'000);
  for (const std::int64_t at : {0L, 951'782'399L, 951'782'400L, 4'107'542'399L}) {  // leap years
    CHECK(unix_ns_of(moment_text(at * 1'000'000'000)) == at * 1'000'000'000);
  }
  for (const char* wrong : {"", "2026-12-01", "2026-12-01T08:00:00", "2026-13-01T08:00:00Z",
                            "2026-02-29T08:00:00Z", "2026-12-01T24:00:00Z", "2026-12-01T08:00:60Z",
                            "1969-12-31T23:59:59Z", "2026-12-0xT08:00:00Z"}) {
    INFO(wrong);
    CHECK_FALSE(unix_ns_of(wrong));
    CHECK(only_error(kLeast + "[blocks]\nbegin = \"" + wrong + "\"\n") ==
          "plan.toml:17:9: blocks.begin = \"" + std::string(wrong) +
              "\": expected a moment of UTC as a text, such as \"2026-12-01T08:00:00Z\"");
  }
  CHECK(only_error(kLeast + "[blocks]\nbegin = \"2026-12-01T08:00:00Z\"\n[pairs]\nmax = 30\n") ==
        "plan.toml:17:9: blocks.begin: hosts that switch together end together: pairs.max = 30 "
        "must be pairs.min = 12");
}

TEST_CASE("mistakes are told with line and column, value and what is allowed") {
  CHECK(only_error(kTop + kTiming + "[[arm]]\nname=\"x\"\nalgorithm=\"dcqcn\"\n") ==
        "plan.toml:1:1: a live experiment compares two arms, the champion first; 1 [[arm]] given");
  CHECK(only_error(kLeast + "[blocks]\nlength = \"50ms\"\n") ==
        "plan.toml:17:10: blocks.length = 50ms: at least max(10 x wash-out, 30 x "
        "timing.iteration) = 100ms");
  CHECK(only_error(kLeast + "[blocks]\nwashout = \"1ms\"\n").find("timing.fct_p999") !=
        std::string::npos);
  CHECK(only_error(kLeast + "[pairs]\nmin = 5\n").find("plan.toml:17:7: pairs.min = ") == 0);
  CHECK(only_error(kLeast + "[analysis]\nprimary = \"p99_shrot\"\n").find("\"p99_short\"?") !=
        std::string::npos);
  CHECK(only_error(kLeast + "[analysis]\nprimary = \"marked_share\"\n").find("no good direction") !=
        std::string::npos);
  CHECK(only_error(kLeast + "[analysis]\nmetrics = [\"goodput\"]\n").find("has a role already") !=
        std::string::npos);
  CHECK(only_error(kLeast + "[guard]\npause_shar = 0.1\n").find("pause_share") !=
        std::string::npos);
  CHECK(only_error(kTop + kArms).find("give that, or blocks.washout") != std::string::npos);
  CHECK(only_error(kLeast + "[[soft]]\nmetric = \"offered\"\nworse_by = 0.1\n")
            .find("nothing to guard") != std::string::npos);
  CHECK(only_error(kLeast + "[blocks]\ncarryover = 7\n[pairs]\nmax = 30\n").find("60 blocks") !=
        std::string::npos);
  CHECK(only_error("schema = 2\n").find("schema") != std::string::npos);
}

TEST_CASE("all mistakes of a file are told at once") {
  const auto plan = read("nmae = \"x\"\n[analysis]\nalpha = 2\n");
  CHECK(plan.errors.size() >= 5);  // the key, alpha, and no design, seed, arms
}

TEST_CASE("clusters: named once, a NIC in one, as many as the design needs") {
  const std::string top = "seed = 1\ndesign = \"paired_rails\"\n";
  const auto cluster = [](const char* name, const char* nic) {
    return std::string("[[cluster]]\nname = \"") + name + "\"\nnics = [\"" + nic + "\"]\n";
  };
  CHECK(read(top + cluster("a", "h0") + cluster("b", "h1") + kArms + kTiming).ok());
  CHECK(only_error(top + cluster("a", "h0") + kArms + kTiming).find("two [[cluster]]; 1 given") !=
        std::string::npos);
  CHECK(only_error(top + cluster("a", "h0") + cluster("b", "h0") + kArms + kTiming)
            .find("another cluster already") != std::string::npos);
  CHECK(only_error(kLeast + cluster("a", "h0")).find("no [[cluster]]") != std::string::npos);
}

TEST_CASE("limits that the service would refuse are refused in the file") {
  CHECK(read(kLeast + "[guard]\nstall_ms = 100\n").ok());
  CHECK(only_error(kLeast + "[guard]\nstall_ms = 101\n").find("100") != std::string::npos);
  CHECK(only_error(kLeast + "[guard]\ndrops_packets = 2000000000\n").find("drops_packets") !=
        std::string::npos);
}

// Whoever carries the plan out has loaded the plug-in; here its table is a built-in one's.
TEST_CASE("an arm may be a plug-in, and the digest covers which code it is") {
  config::AlgorithmCatalogue catalogue;
  nlohmann::json table = config::algorithm_json(*cc::find("swift"));
  table["name"] = "mine";
  table["plugin"] = config::origin_json({"/plugins/mine.so", std::string(64, 'a')});
  REQUIRE(catalogue.add(table).empty());
  std::string text = kLeast;
  const std::string::size_type at = text.find("algorithm = \"cadence\"");
  REQUIRE(at != std::string::npos);
  text.replace(at, 21, "algorithm = \"plugin:/plugins/mine.so\"");
  CHECK(plugin_paths(text) == std::vector<std::string>{"/plugins/mine.so"});
  CHECK(plugin_paths(kLeast).empty());
  CHECK(plugin_paths("no plan").empty());
  CHECK(only_error(text).find("no plug-ins here") != std::string::npos);
  const auto find = [&](const std::string& path) { return catalogue.at(path); };
  auto plan = read_plan_text(text, "plan.toml", catalogue.algorithms(), find);
  for (const std::string& error : plan.errors) UNSCOPED_INFO(error);
  REQUIRE(plan.ok());
  CHECK(plan.value.arms[1].cc.algorithm == "mine");
  note_plugins(plan.value, catalogue);
  REQUIRE(plan.value.plugins.size() == 1);
  const std::string before = plan_text(plan.value);
  CHECK(before.find(std::string(64, 'a')) != std::string::npos);
  table["plugin"]["sha256"] = std::string(64, 'b');
  REQUIRE(catalogue.add(table).empty());
  note_plugins(plan.value, catalogue);
  CHECK(plan_text(plan.value) != before);
  // Nobody knows where a relative path begins for the service.
  text.replace(text.find("plugin:/plugins"), 15, "plugin:plugins");
  const auto relative = read_plan_text(text, "plan.toml", catalogue.algorithms(), find);
  REQUIRE(relative.errors.size() == 1);
  CHECK(relative.errors[0].find("absolute path") != std::string::npos);
}

TEST_CASE("every setting is under the digest") {
  const Plan plain = read(kLeast).value;
  const std::string before = sha256(plan_text(plain));
  for (const char* change :
       {"[pairs]\nmax = 60\n", "[analysis]\nalpha = 0.04\n", "[analysis]\nclosed_loop = true\n",
        "[blocks]\nlength = \"1s\"\n", "[guard]\nstall_ms = 2\n", "[timing2]\n",
        "[analysis]\nplacebos = [\"temperature\"]\n", "[calibration]\nresults = \"aa\"\n"}) {
    const auto changed = read(kLeast + change);
    if (std::string(change) == "[timing2]\n") {
      CHECK_FALSE(changed.ok());
      continue;
    }
    INFO(change);
    REQUIRE(changed.ok());
    CHECK(sha256(plan_text(changed.value)) != before);
  }
}

TEST_CASE("the plan that comes with the program is read") {
  const auto plan =
      read_plan_file(PACELINE_SOURCE_DIR "/configs/experiments/live-incast.toml", cc::algorithms());
  CHECK(plan.errors == std::vector<std::string>{});
  CHECK(plan.value.arms.size() == 2);
}
