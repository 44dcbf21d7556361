// Loads plug-ins while the service runs: only from folders that its settings name, and only files
// that no user but root and the one that started the service could have written. A plug-in runs
// with all rights of the service, and a user of the control socket may have fewer. For the control
// thread; workers open no files.
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
  // any). A plug-in that is already loaded is returned as it is. A copy is loaded: the file may be
  // replaced or overwritten. The error begins with the path.
  cc::Registered load(const std::string& path, const std::string& sha256) const;

 private:
  std::vector<std::string> folders_;
  Credentials reader_;
};

}  // namespace paceline::service
