// Which plug-ins may come into this process while it runs, and how: only from folders that its
// settings name, and only files that nobody but root and the service's user could have written. A
// plug-in is code with all the rights that the service has, and whoever may use the control socket
// may have less. Of the control thread; the worker's thread opens nothing.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cc/registry.h"

namespace paceline::service {

class PluginShelf {
 public:
  // Absolute paths; none: nothing is loaded.
  explicit PluginShelf(std::vector<std::string> folders) : folders_(std::move(folders)) {}

  // The plug-in in the file at `path`, absolute, with this content (64 hexadecimal digits; empty:
  // any). One that is loaded already is that one. What is loaded is a copy: the file may be
  // replaced or written over. The error begins with the path.
  cc::Registered load(const std::string& path, const std::string& sha256) const;

 private:
  std::vector<std::string> folders_;
};

}  // namespace paceline::service
