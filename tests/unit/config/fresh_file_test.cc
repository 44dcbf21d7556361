#include "dataplane/config/fresh_file.h"

#include <stdlib.h>  // mkdtemp is POSIX
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace paceline::config {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_CASE("a fresh file follows nothing that others have put in its place", "[config]") {
  std::string pattern = (fs::temp_directory_path() / "paceline-XXXXXX").string();
  REQUIRE(::mkdtemp(pattern.data()) != nullptr);
  const fs::path folder = pattern;
  std::ofstream(folder / "victim") << "precious";
  const auto check_fresh = [&](const std::string& name) {
    CHECK(make_fresh_file((folder / name).string(), 0600) == 0);
    CHECK(fs::symlink_status(folder / name).type() == fs::file_type::regular);
    CHECK(fs::file_size(folder / name) == 0);
    CHECK(text_of(folder / "victim") == "precious");
  };
  check_fresh("none");
  fs::create_symlink(folder / "victim", folder / "link");
  check_fresh("link");
  fs::create_hard_link(folder / "victim", folder / "hard");
  check_fresh("hard");
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0666) == 0);
  check_fresh("pipe");
  fs::create_directory(folder / "taken");
  CHECK(make_fresh_file((folder / "taken").string()) != 0);
  CHECK(make_fresh_file((folder / "no" / "folder").string()) == ENOENT);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace paceline::config
