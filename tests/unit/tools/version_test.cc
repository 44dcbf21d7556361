// `paceline --version`.

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/unit/tools/command.h"

namespace paceline::tools {
namespace {

TEST_CASE("--version names the version and the commit", "[cli]") {
  const Folder folder;
  const Outcome outcome = paceline_command(folder, {"--version"});
  CHECK(outcome.code == 0);
  // Where there is no repository the version stands alone.
  CHECK_THAT(outcome.out,
             Catch::Matchers::Matches(
                 "paceline [0-9]+[.][0-9]+[.][0-9]+( [(][0-9a-f]{12}(-dirty)?[)])?\n"));
}

TEST_CASE("the version of a tree without a repository is told by commit.txt", "[cli]") {
  const Folder folder;
  std::filesystem::create_directory(folder.path("cmake"));
  const auto version_of = [&folder](const std::string& archived) {
    folder.write("cmake/commit.txt", archived + "\n");
    const std::string command = "cmake -DSOURCE=" + folder.path(".") +
                                " -DVERSION=1.2.3 -DOUT=" + folder.path("out.cc") +
                                " -P " PACELINE_SOURCE_DIR "/cmake/PacelineCommit.cmake";
    REQUIRE(std::system(command.c_str()) == 0);
    return folder.read("out.cc");
  };
  CHECK_THAT(version_of("0123456789abcdef0123456789abcdef01234567"),
             Catch::Matchers::Contains("\"1.2.3 (0123456789ab)\""));
  CHECK_THAT(version_of("$Format:%H$"), Catch::Matchers::Contains("\"1.2.3\""));
}

}  // namespace
}  // namespace paceline::tools
