#include "tools/ci/ci_folder.h"

#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace paceline::tools {

namespace fs = std::filesystem;

CiFolder::CiFolder(const std::string& parent) : parent_(parent) {
  std::error_code error;
  if (parent_.empty()) parent_ = fs::temp_directory_path(error).string();
  if (!error) parent_is_ours_ = fs::create_directories(parent_, error);
  path_ = fs::absolute(parent_).string() + "/paceline-ci-XXXXXX";
  if (error || ::mkdtemp(path_.data()) == nullptr) {
    error_ = fmt::format("{} {}: cannot be written: {}", parent.empty() ? "TMPDIR" : "--keep",
                         parent_, error ? error.message() : std::strerror(errno));
    path_.clear();
  }
}

CiFolder::~CiFolder() {
  std::error_code ignored;
  if (!path_.empty() && !kept_) fs::remove_all(path_, ignored);
  if (parent_is_ours_ && !kept_) fs::remove(parent_, ignored);
}

std::string CiFolder::keep() {
  kept_ = true;
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(path_, ignored)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return fmt::format("{}: {}", path_, fmt::join(names, ", "));
}

}  // namespace paceline::tools
