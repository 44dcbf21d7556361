// Which plug-ins may come into this process while it runs, and how: only from folders that its
// settings name, and only files that nobody but root and the user that started the service could
// have written. A plug-in is code with all the rights that the service has, and whoever may use the
// control socket may have less. Of the control thread; the worker's thread opens nothing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cc/registry.h"
#include "dataplane/service/memory/credentials.h"

namespace paceline::service {

class PluginShelf {
 public:
  // Absolute paths; none: nothing is loaded. Files are read as the user that makes it, before the
  // service gives up its rights.
  explicit PluginShelf(std::vector<std::string> folders);

  // The plug-in in the file at `path`, absolute, with this content (64 hexadecimal digits; empty:
  // any). One that is loaded already is that one. What is loaded is a copy: the file may be
  // replaced or written over. The error begins with the path.
  cc::Registered load(const std::string& path, const std::string& sha256) const;

 private:
  std::vector<std::string> folders_;
  Credentials reader_;
};

}  // namespace paceline::service
