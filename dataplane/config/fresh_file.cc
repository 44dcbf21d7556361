#include "dataplane/config/fresh_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace paceline::config {

int make_fresh_file(const std::string& path, unsigned mode) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return errno;
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (file < 0) return errno;
  ::close(file);
  return 0;
}

}  // namespace paceline::config
