// [[fault]]: what is read, and what is refused.

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "dataplane/config/fault_kinds.h"
#include "dataplane/config/scenario/scenario_reader.h"
#include "tests/unit/config/test_algorithms.h"

namespace paceline::config {
namespace {

constexpr const char* kLeaves =
    "fabric = { topology = \"leaf_spine\", leaves = 2, spines = 2, hosts_per_leaf = 2 }\n"
    "workload = { kind = \"job\" }\n[[fault]]\n";

Read<Scenario> read(const std::string& members) {
  return read_scenario_text(kLeaves + members, "s.toml", "folder", {test_algorithms(), {}});
}

std::vector<std::string> one(const std::string& error) { return {"s.toml:" + error}; }

TEST_CASE("a fault has the severity of its kind unless it has its own", "[config]") {
  const auto usual = read("kind = \"slow_rank\"\ntarget = \"rank3\"\n");
  REQUIRE(usual.errors == std::vector<std::string>{});
  REQUIRE(usual.value.faults.size() == 1);
  CHECK(usual.value.faults[0].rank == 3);
  CHECK(usual.value.faults[0].severity == find_fault_kind("slow_rank")->usual);
  CHECK(usual.value.faults[0].until() == kNever);

  const auto own = read(
      "kind = \"bad_path\"\ntarget = \"leaf1-spine0\"\nat = \"1us\"\nfor = \"2us\"\nseverity = 7\n"
      "direction = \"up\"\n");
  REQUIRE(own.errors == std::vector<std::string>{});
  CHECK(own.value.faults[0].links == std::vector<std::uint32_t>{6});
  CHECK(own.value.faults[0].severity == 7);
  CHECK(own.value.faults[0].until() == picos_from_micros(3));
}

TEST_CASE("a fault in which chance decides may have a seed", "[config]") {
  const auto own = read("kind = \"lossy_link\"\ntarget = \"host0\"\nseed = 5\n");
  REQUIRE(own.errors == std::vector<std::string>{});
  CHECK(own.value.faults[0].seed == 5);
  const auto without = read("kind = \"hash_collision\"\ntarget = \"leaf0-spine1\"\n");
  REQUIRE(without.errors == std::vector<std::string>{});
  CHECK(without.value.faults[0].seed == 0);
}

TEST_CASE("a whole plane can be dead, or flap", "[config]") {
  const auto with = [](const std::string& fault) {
    return read_scenario_text(
        "fabric = { topology = \"leaf_spine\", leaves = 2, spines = 1, hosts_per_leaf = 2, "
        "ports = 2 }\ntransport = { reliability = \"selective\" }\n"
        "workload = { kind = \"job\" }\n[[fault]]\n" +
            fault,
        "s.toml", "folder", {test_algorithms(), {}});
  };
  const auto dead = with("kind = \"dead_port\"\ntarget = \"plane1\"\n");
  REQUIRE(dead.errors == std::vector<std::string>{});
  CHECK(dead.value.faults[0].links == std::vector<std::uint32_t>{4, 5, 6, 7, 10, 11});
  CHECK(with("kind = \"flapping_port\"\nfor = \"1ms\"\ntarget = \"plane0\"\n").errors.empty());
  CHECK(with("kind = \"dead_port\"\ntarget = \"plane2\"\n")
            .errors.front()
            .find("s.toml:6:10: fault.target = \"plane2\": ") == 0);
  CHECK(
      with("kind = \"slow_nic\"\ntarget = \"plane1\"\n").errors ==
      one("6:10: fault.target = \"plane1\": allowed with fault.kind = \"slow_nic\" is a NIC, such "
          "as \"host3\""));
}

TEST_CASE("a fault of a switch is of all its links", "[config]") {
  const auto off = read("kind = \"ecn_off\"\ntarget = \"leaf0\"\n");
  REQUIRE(off.errors == std::vector<std::string>{});
  CHECK(off.value.faults[0].links == std::vector<std::uint32_t>{0, 1, 4, 5});
}

TEST_CASE("bad faults are errors with place, value and what is allowed", "[config]") {
  CHECK(read("kind = \"slow_rank\"\n").errors == one("3:1: a [[fault]] needs \"target\""));
  CHECK(read("kind = \"slow_rnak\"\ntarget = \"rank1\"\n")
            .errors.front()
            .find("s.toml:4:8: fault.kind = \"slow_rnak\": did you mean \"slow_rank\"?") == 0);
  CHECK(read("kind = \"slow_rank\"\ntarget = \"host1\"\n").errors ==
        one("5:10: fault.target = \"host1\": allowed with fault.kind = \"slow_rank\" is a rank of "
            "the job, such as \"rank3\""));
  CHECK(read("kind = \"slow_rank\"\ntarget = \"rank4\"\n").errors ==
        one("5:10: fault.target = \"rank4\": no such rank, allowed is \"rank0\" .. \"rank3\""));
  CHECK(read("kind = \"slow_nic\"\ntarget = \"leaf0-spine0\"\n").errors ==
        one("5:10: fault.target = \"leaf0-spine0\": allowed with fault.kind = \"slow_nic\" is a "
            "NIC, such as \"host3\""));
  CHECK(read("kind = \"bad_path\"\ntarget = \"host1\"\n").errors ==
        one("5:10: fault.target = \"host1\": allowed with fault.kind = \"bad_path\" is one link "
            "between switches, such as \"leaf0-spine1\""));
  CHECK(read("kind = \"lossy_link\"\ntarget = \"host9\"\n")
            .errors.front()
            .find("s.toml:5:10: fault.target = \"host9\": ") == 0);
  CHECK(read("kind = \"lossy_link\"\ntarget = \"host1\"\nseverity = 2\n").errors ==
        one("6:12: fault.severity = 2: out of range, allowed with fault.kind = "
            "\"lossy_link\" is [1e-06 .. 1]: share of the packets that vanish, whatever the load"));
  CHECK(read("kind = \"ecn_off\"\ntarget = \"leaf0\"\nseverity = 2\n").errors ==
        one("6:12: fault.severity does nothing with fault.kind = \"ecn_off\""));
  CHECK(read("kind = \"slow_nic\"\ntarget = \"host0\"\ndirection = \"up\"\n").errors ==
        one("6:13: fault.direction does nothing with fault.kind = \"slow_nic\""));
  CHECK(read("kind = \"flapping_port\"\ntarget = \"host0\"\n").errors ==
        one("3:1: fault.kind = \"flapping_port\" needs fault.for"));
  CHECK(read("kind = \"pfc_storm\"\ntarget = \"host0\"\n").errors ==
        one("3:1: fault.kind = \"pfc_storm\" needs fault.for"));
  CHECK(read("kind = \"slow_nic\"\ntarget = \"host0\"\nseed = 3\n").errors ==
        one("6:8: fault.seed does nothing with fault.kind = \"slow_nic\""));
  CHECK(read("kind = \"lossy_link\"\ntarget = \"host0\"\nseed = 0\n")
            .errors.front()
            .find("s.toml:6:8: fault.seed = 0: ") == 0);
  CHECK(read("kind = \"clock_drift\"\ntarget = \"host0\"\n").errors ==
        one("5:10: fault.target = \"host0\": fault.kind = \"clock_drift\" needs probing.enabled = "
            "true"));
  CHECK(read("kind = \"wrong_dscp\"\ntarget = \"host0\"\nseverity = 1.5\n").errors ==
        one("6:12: fault.severity = 1.5: expected a whole number"));
  CHECK(read("kind = \"hash_collision\"\ntarget = \"host0\"\n").errors ==
        one("5:10: fault.target = \"host0\": allowed with fault.kind = \"hash_collision\" is one "
            "link "
            "between switches, such as \"leaf0-spine1\""));
  CHECK(read("kind = \"dead_port\"\ntarget = \"host0\"\n").errors ==
        one("5:10: fault.target = \"host0\": fault.kind = \"dead_port\" needs NICs of several "
            "ports, fabric.ports"));
}

TEST_CASE("a fault needs what it changes", "[config]") {
  const auto without = [](const std::string& key, const std::string& kind) {
    return read_scenario_text(
               "workload = { kind = \"job\" }\n"
               "fabric = { topology = \"leaf_spine\", leaves = 2, spines = 2, "
               "hosts_per_leaf = 2, " +
                   key +
                   " }\n"
                   "[[fault]]\nkind = \"" +
                   kind + "\"\nfor = \"1ms\"\ntarget = \"" +
                   (kind == "hash_collision" ? "leaf0-spine0" : "host1") + "\"\n",
               "s.toml", "folder", {test_algorithms(), {}})
        .errors;
  };
  CHECK(without("flow_control = \"none\"", "pcie_limit") ==
        one("6:10: fault.target = \"host1\": fault.kind = \"pcie_limit\" needs "
            "fabric.flow_control = \"pfc\""));
  CHECK(without("load_balance = \"spray\"", "hash_collision") ==
        one("6:10: fault.target = \"leaf0-spine0\": fault.kind = \"hash_collision\" needs one path "
            "a connection: fabric.ports = 1, fabric.load_balance = \"ecmp\", transport.multipath = "
            "\"none\""));
}

TEST_CASE("every kind of fault can be found by its name and says what it does", "[config]") {
  for (const FaultKindInfo& kind : fault_kinds()) {
    CAPTURE(kind.name);
    CHECK(find_fault_kind(kind.name) == &kind);
    CHECK_FALSE(kind.meaning.empty());
    CHECK((kind.most == 0) == kind.severity.empty());
    CHECK((kind.most == 0 || (kind.least <= kind.usual && kind.usual <= kind.most)));
  }
  CHECK(find_fault_kind("slow") == nullptr);
}

}  // namespace
}  // namespace paceline::config
