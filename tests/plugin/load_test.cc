// What is loaded and what is refused, and why.

#include <array>
#include <cstdio>
#include <fstream>

#include "cc/params.h"
#include "cc/plugin/plugin.h"
#include "tests/plugin/plugin_support.h"

namespace paceline::plugintest {
namespace {

std::string refusal_of(const std::string& name) {
  const cc::Registered registered = load_plugin(module_path(name));
  CHECK(registered.info == nullptr);
  return registered.error;
}

TEST_CASE("a plug-in becomes an algorithm like any other") {
  const cc::AlgorithmInfo& info = loaded("aimd");
  CHECK(cc::is_plugin(info.id));
  CHECK(info.name == "aimd");
  CHECK(info.key == cc::ContextKey::per_qp);
  CHECK(info.echo == EcnEcho::cnp);
  CHECK(info.wants == cc::signal_bit(cc::Signal::cnp));
  CHECK_FALSE(info.proactive);
  REQUIRE(info.params.size() == 3);
  CHECK(info.params[2].name == "period_us");
  CHECK(info.params[2].unit == "us");
  CHECK(info.params[2].max == 10'000);
  CHECK(info.params[2].live);

  CHECK(cc::find("aimd") == &info);
  CHECK(cc::find(info.id) == &info);
  CHECK(cc::plugin_of(info.id) != nullptr);
  CHECK(cc::nearest_algorithm("aimb") == "aimd");
  CHECK(&cc::algorithms().back() == &info);
}

TEST_CASE("the same shared object twice is one algorithm") {
  const std::span<const cc::AlgorithmInfo> before = cc::algorithms();
  const cc::AlgorithmInfo& first = loaded("aimd");
  const std::size_t count = cc::algorithms().size();
  CHECK(&loaded("aimd") == &first);
  CHECK(&loaded("../modules/aimd") == &first);
  CHECK(cc::algorithms().size() == count);
  CHECK(before.data() == cc::algorithms().data());  // what was found before has not moved
}

TEST_CASE("a built-in algorithm is no plug-in") {
  for (const cc::AlgorithmInfo& info : cc::algorithms().first(cc::kAlgorithms)) {
    CHECK_FALSE(cc::is_plugin(info.id));
    CHECK(cc::plugin_of(info.id) == nullptr);
  }
  CHECK(cc::find(static_cast<cc::AlgorithmId>(255)) == nullptr);
  CHECK(cc::plugin_of(static_cast<cc::AlgorithmId>(255)) == nullptr);
}

TEST_CASE("what was built against version 1.0 loads, with its parameters and no profiles") {
  const cc::AlgorithmInfo& info = loaded("halver");
  REQUIRE(info.params.size() == 2);
  CHECK(info.params[1].name == "unused_bytes");
  CHECK(info.params[1].default_value == 4096);
  CHECK_FALSE(info.params[1].live);
  CHECK(info.profiles.empty());
}

TEST_CASE("what was built against version 1.1 loads, with profiles that scale") {
  const cc::AlgorithmInfo& info = loaded("keeper");
  REQUIRE(info.profiles.size() == 1);
  CHECK(info.profiles[0].name == "gentle");
  cc::PortFacts facts;
  facts.link_rate = rate_from_gbps(200);
  const auto values = cc::resolve_params(info, "gentle", {}, facts);
  REQUIRE(values.index() == 0);
  CHECK(std::get<0>(values) == std::vector<double>{0.8, 100});
}

TEST_CASE("what was built against version 1.2 loads, and has no receiving half") {
  const cc::AlgorithmInfo& info = loaded("trimmer");
  REQUIRE(info.params.size() == 2);
  CHECK_FALSE(info.proactive);
  CHECK(info.wants == (cc::signal_bit(cc::Signal::cnp) | cc::signal_bit(cc::Signal::nack)));
}

TEST_CASE("what was built against version 1.3 loads, has a receiving half, and runs") {
  const cc::AlgorithmInfo& info = loaded("lender");
  CHECK(info.proactive);
  CHECK(cc::plugin_of(info.id)->table.rates == nullptr);
  VirtualWorld world = world_of(plugin_toml("lender", "200kB"));
  REQUIRE(world.run() == RunEnd::completed);
  CHECK(world.messages_failed() == 0);
  CHECK(counted(world).plugin_quarantines == 0);
}

TEST_CASE("profiles of version 1.1 are those of the table") {
  const cc::AlgorithmInfo& info = loaded("dcqcn");
  const cc::AlgorithmInfo& built_in = *cc::find("dcqcn");
  REQUIRE(info.profiles.size() == built_in.profiles.size());
  REQUIRE(info.profiles.size() >= 2);
  cc::PortFacts facts;
  facts.link_rate = rate_from_gbps(200);
  for (const cc::Profile& profile : built_in.profiles) {
    INFO(profile.name);
    const auto ours = cc::resolve_params(built_in, profile.name, {}, facts);
    const auto theirs = cc::resolve_params(info, profile.name, {}, facts);
    REQUIRE(ours.index() == 0);
    REQUIRE(theirs.index() == 0);
    CHECK(std::get<0>(ours) == std::get<0>(theirs));
  }
}

TEST_CASE("a table that is wrong is refused with what is wrong and what is allowed") {
  const std::array<std::pair<const char*, const char*>, 11> cases{{
      {"wrong_version", "version 1.5 of the interface; this host takes 1.0 to 1.4"},
      {"wrong_symbol", "does not export paceline_cc_plugin"},
      {"wrong_null", "cannot run in a host of version 1.4"},
      {"wrong_state", "state_bytes = 241: allowed is 0 to 240"},
      {"wrong_range", "parameter 'reversed': 5 is not within 10 to 1"},
      {"wrong_unit", "unit 'furlongs'; allowed is us, ns"},
      {"wrong_twice", "parameter 'gain' is given twice"},
      {"wrong_derive", "derive writes beyond its derived_bytes = 8"},
      {"wrong_name", "the name 'dcqcn' is that of a built-in algorithm"},
      {"wrong_spelling", "name 'Wrong Name': allowed is"},
      {"missing", "No such file"},
  }};
  const std::size_t before = cc::algorithms().size();
  for (const auto& [name, why] : cases) {
    const std::string error = refusal_of(name);
    INFO(error);
    CHECK(error.find(why) != std::string::npos);
    CHECK(error.find(module_path(name)) == 0);
  }
  CHECK(cc::algorithms().size() == before);
}

TEST_CASE("a file that is no shared object is refused") {
  const std::string path = module_path("text_that_is_no_object");
  std::ofstream(path) << "text";
  const cc::Registered registered = load_plugin(path);
  std::remove(path.c_str());
  CHECK(registered.info == nullptr);
  CHECK(registered.error.find(path) == 0);
}

TEST_CASE("a scenario names a plug-in by its path, and errors say where") {
  const config::Scenario scenario = scenario_of(plugin_toml("aimd"));
  CHECK(scenario.cc.algorithm == "aimd");

  const auto errors_of = [](const std::string& cc) {
    return config::read_scenario_text("[cc]\n" + cc + "\n", "test.toml", PACELINE_PLUGINS,
                                      reader_options())
        .errors;
  };
  CHECK(errors_of("algorithm = \"plugin:aimd.so\"").empty());  // relative to the file's folder
  CHECK(errors_of("algorithm = \"plugin:aimd.so\"\nparams = { decrease = 0.9 }").empty());

  const auto fallback = errors_of("fallback = \"plugin:aimd.so\"");
  REQUIRE(fallback.size() == 1);
  CHECK(fallback[0].find("test.toml:2:") == 0);
  CHECK(fallback[0].find("cannot be what takes over") != std::string::npos);

  const auto empty = errors_of("algorithm = \"plugin:\"");
  REQUIRE(empty.size() == 1);
  CHECK(empty[0].find("expected a file") != std::string::npos);

  const auto wrong = errors_of("algorithm = \"plugin:wrong_state.so\"");
  REQUIRE(wrong.size() == 1);
  CHECK(wrong[0].find("allowed is 0 to 240") != std::string::npos);

  const auto value = errors_of("algorithm = \"plugin:aimd.so\"\nparams = { decrease = 2 }");
  REQUIRE(value.size() == 1);
  CHECK(value[0].find("allowed is [0.1 .. 0.99]") != std::string::npos);

  const auto none = config::read_scenario_text("[cc]\nalgorithm = \"plugin:aimd.so\"\n",
                                               "test.toml", ".", {cc::algorithms(), {}})
                        .errors;
  REQUIRE(none.size() == 1);
  CHECK(none[0].find("no plug-ins here") != std::string::npos);
}

}  // namespace
}  // namespace paceline::plugintest
