// The file of pacelined: every mistake with its line and column, and what a reload may change.
#include "control/daemon/config/daemon_config.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

namespace paceline::daemon {

namespace {

config::Read<DaemonConfig> read(const std::string& text) {
  return read_daemon_text(text, "d.toml", "/etc/x");
}

}  // namespace

TEST_CASE("the example in the tree is good, and says the defaults", "[daemon_config]") {
  const auto example =
      read_daemon_file(std::string(PACELINE_SOURCE_DIR) + "/configs/pacelined.toml");
  REQUIRE(example.errors == std::vector<std::string>{});
  CHECK(example.value.telemetry == TelemetryConfig{});
  ApiConfig api;
  api.metrics_port = 9469;
  CHECK(example.value.api == api);
  DataplaneConfig dataplane;
  dataplane.testbed = std::string(PACELINE_SOURCE_DIR) + "/configs/testbeds/pair.toml";
  CHECK(example.value.dataplane == dataplane);
  CHECK(example.value.daemon == ProcessConfig{});
}

TEST_CASE("values are read, names of files from the folder of the file", "[daemon_config]") {
  const auto c = read(
      "[dataplane]\ntestbed = \"pair.toml\"\nset = [\"a=1\", \"b=2\"]\n[telemetry]\ninterval = "
      "\"2ms\"\n[api]\nworld_readable = true\n");
  REQUIRE(c.errors == std::vector<std::string>{});
  CHECK(c.value.dataplane.testbed == "/etc/x/pair.toml");
  CHECK(c.value.dataplane.set == std::vector<std::string>{"a=1", "b=2"});
  CHECK(c.value.telemetry.interval == picos_from_micros(2000));
  CHECK(c.value.api.world_readable);
}

TEST_CASE("all mistakes are told, each where it is", "[daemon_config]") {
  const auto c = read(
      "schema = 1\n[telemetry]\ninterval = \"5us\"\nintervall = 3\n[api]\nport = 70000\naddress = "
      "\"::\"\n[daemon]\nlog_level = \"loud\"\n[demon]\n");
  std::string all;
  for (const std::string& error : c.errors) all += error + "\n";
  INFO(all);
  CHECK(all.find("d.toml:3:") != std::string::npos);
  CHECK(all.find("d.toml:4:1: ") != std::string::npos);
  CHECK(all.find("interval\"") != std::string::npos);
  CHECK(all.find("d.toml:6:") != std::string::npos);
  CHECK(all.find("api.tokens") != std::string::npos);
  CHECK(all.find("d.toml:9:") != std::string::npos);
  CHECK(all.find("demon") != std::string::npos);
  CHECK(c.errors.size() == 8);
  CHECK(read("[api]\nkey = \"k\"\n").errors.size() == 1);
  CHECK(read("[dataplane]\nset = [\"a=1\"]\n").errors.size() == 1);
  CHECK(read("[telemetry]\ninterval = \"1s\"\nfine_span = \"1s\"\n").errors.size() == 1);
  const auto gone = read("[telemetry]\nminutes_span = \"86400s\"\n");
  REQUIRE(gone.errors.size() == 1);
  CHECK(gone.errors[0].find("d.toml:2:") != std::string::npos);
  CHECK(gone.errors[0].find("telemetry.minutes_span: removed") != std::string::npos);
  CHECK(read("schema = 2\n").errors.size() == 1);
  CHECK(read("a = [\n").errors.size() == 1);
}

TEST_CASE("a reload changes what may change, and names what may not", "[daemon_config]") {
  const DaemonConfig base = read("[dataplane]\ntestbed = \"a.toml\"\n").value;
  const auto fixed = [&](const std::string& text) {
    return fixed_changes(base, read(text).value).size();
  };
  CHECK(fixed("[dataplane]\ntestbed = \"b.toml\"\nset = [\"a=1\"]\n[daemon]\nlog_level = "
              "\"debug\"\n[telemetry]\nstalled_after = 9\n") == 0);
  CHECK(fixed("[dataplane]\nsocket = \"/tmp/x\"\n") == 2);  // nor from starting to attaching
  CHECK(fixed("[dataplane]\ntestbed = \"a.toml\"\n[telemetry]\ninterval = \"20ms\"\n") == 1);
  CHECK(fixed("[dataplane]\ntestbed = \"a.toml\"\n[api]\nsocket = \"/tmp/y\"\n") == 1);
  CHECK(fixed("[dataplane]\ntestbed = \"a.toml\"\n[daemon]\nuser = \"nobody\"\n") == 1);
}

TEST_CASE("what the tuner could notice too late is refused", "[daemon_config]") {
  const auto read = [](const std::string& text) {
    return read_daemon_text("schema = 1\n" + text, "p.toml", "/etc");
  };
  CHECK(read("[tuner]\nmode = \"auto\"\nwash = \"190ms\"\n").ok());
  const auto late = read("[tuner]\nwash = \"190ms\"\nguard = \"200ms\"\n");
  REQUIRE(late.errors.size() == 1);
  CHECK(late.errors[0].find("after 400 ms") != std::string::npos);
  const auto slow = read("[telemetry]\ninterval = \"200ms\"\n[tuner]\nmode = \"auto\"\n");
  CHECK_FALSE(slow.ok());
  CHECK(read("[tuner]\nmode = \"on\"\n").errors.size() == 1);
  CHECK(read("[tuner]\npresets = \"p\"\n").value.tuner.presets == "/etc/p");
}

TEST_CASE("docs/daemon.md has the reference of all keys", "[daemon_config]") {
  std::ostringstream page;
  page << std::ifstream(std::string(PACELINE_SOURCE_DIR) + "/docs/daemon.md").rdbuf();
  CHECK(page.str().find(daemon_reference_markdown()) != std::string::npos);
}

TEST_CASE("the reference is written into docs/daemon.md", "[.write-reference]") {
  const std::string path = std::string(PACELINE_SOURCE_DIR) + "/docs/daemon.md";
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  std::string page = text.str();
  const std::string begin = "<!-- keys: begin -->\n";
  const std::size_t from = page.find(begin) + begin.size();
  const std::size_t to = page.find("<!-- keys: end -->");
  REQUIRE(from <= to);
  std::ofstream(path) << page.substr(0, from) + daemon_reference_markdown() + page.substr(to);
}

}  // namespace paceline::daemon
