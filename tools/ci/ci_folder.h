// A new folder for what a run of `paceline ci` may leave: it goes with this object unless it is
// kept.
#pragma once

#include <string>

namespace paceline::tools {

class CiFolder {
 public:
  // In `parent`, which is made where it is missing; empty: in that for temporary files.
  explicit CiFolder(const std::string& parent);
  ~CiFolder();
  CiFolder(const CiFolder&) = delete;
  CiFolder& operator=(const CiFolder&) = delete;

  const std::string& error() const { return error_; }  // empty: the folder exists
  const std::string& path() const { return path_; }
  // Returns its path and its contents, for people.
  std::string keep();

 private:
  std::string parent_;
  std::string path_;
  std::string error_;
  bool parent_is_ours_ = false;
  bool kept_ = false;
};

}  // namespace paceline::tools
