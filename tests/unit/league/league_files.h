// A league of two scenarios and three entries in a folder of its own, for tests to read and to
// break.
#pragma once

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "cc/registry.h"
#include "control/league/plan/plan.h"

namespace paceline::league {

inline const std::string kLeagueFile = R"(schema = 1
name = "small"
seed = 5
quick = { repetitions = 3 }
full = { repetitions = 8 }
[[entry]]
name = "paper"
algorithm = "dcqcn"
profile = "paper"
needs = "edge"
effort = "as published"
[[entry]]
name = "step"
algorithm = "dctcp"
needs = "edge"
effort = "as published"
transport = { reliability = "selective" }
fabric = { ecn = { kmin = "30kB", kmax = "30kB", pmax = 1 } }
[[entry]]
name = "line"
algorithm = "fixed"
needs = "switch"
effort = "none"
[[scenario]]
name = "burst"
file = "burst.toml"
quick = { workload = { message_bytes = "50kB" } }
[[scenario]]
name = "cycle"
file = "cycle.toml"
)";

class LeagueFolder {
 public:
  LeagueFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "paceline-test-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    root_ = name;
    write("burst.toml",
          "# Four to one.\n# All at once.\n\n[fabric]\nhosts = 5\n[cc]\nalgorithm = \"dcqcn\"\n"
          "[workload]\nkind = \"incast\"\nfan_in = 4\nmessage_bytes = \"200kB\"\n");
    write("cycle.toml", "[fabric]\nhosts = 4\n[workload]\nkind = \"permutation\"\n");
  }
  ~LeagueFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  LeagueFolder(const LeagueFolder&) = delete;
  LeagueFolder& operator=(const LeagueFolder&) = delete;

  std::string path(const std::string& name) const { return (root_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(root_ / name, std::ios::binary) << text;
    return path(name);
  }
  // The league's text with one place changed, and what reading it says.
  config::Read<Plan> read_with(const std::string& from, const std::string& to,
                               PlanOptions options = {}) const {
    std::string text = kLeagueFile;
    if (!from.empty()) {
      const std::size_t at = text.find(from);
      REQUIRE(at != std::string::npos);
      text.replace(at, from.size(), to);
    }
    if (options.reader.algorithms.empty()) options.reader.algorithms = shelf();
    return read_plan_file(write("small.toml", text), options);
  }
  // What this test's build has on its shelf, whatever else is there today.
  static std::span<const cc::AlgorithmInfo> shelf() {
    static const std::vector<cc::AlgorithmInfo> few{*cc::find("fixed"), *cc::find("dcqcn"),
                                                    *cc::find("dctcp")};
    return few;
  }

 private:
  std::filesystem::path root_;
};

}  // namespace paceline::league
