// A user who has built `paceline` alone is told the one command that builds the rest.

#include <array>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/unit/tools/command.h"
#include "tools/testbed/service_process.h"

namespace paceline::tools {
namespace {

using Catch::Matchers::Contains;
namespace fs = std::filesystem;

TEST_CASE("a part that is missing: how to get it, in a build tree and installed", "[cli]") {
  const Folder folder;
  fs::create_directory(folder.path("tools"));
  const std::array<fs::path, 2> places = {folder.path("tools"), folder.path("tools/../lib")};
  CHECK_THAT(missing_part("paceline-dataplane", places),
             Contains("paceline-dataplane is not in " + folder.path("tools") + ", " +
                      folder.path("lib")) &&
                 Contains("cmake --install"));
  folder.write("CMakeCache.txt", "");
  CHECK_THAT(missing_part("paceline-dataplane", places),
             Contains("cmake --build " + fs::canonical(folder.path(".")).string() +
                      " --target testbed_programs"));
}

TEST_CASE("the target that the message names builds the service and the library",
          "[cli][may_skip]") {
  std::ifstream file(fs::path(PACELINE_BINARY).parent_path() / "../build.ninja");
  if (!file) {
    WARN("skipped: another generator than Ninja");
    return;
  }
  std::string parts;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("build tools/testbed_programs: phony ")) parts = line;
  }
  CHECK_THAT(parts, Contains("tools/paceline") && Contains("/pacelined") &&
                        Contains("/paceline-dataplane"));
}

}  // namespace
}  // namespace paceline::tools
