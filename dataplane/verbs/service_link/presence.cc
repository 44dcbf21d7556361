#include "dataplane/verbs/service_link/presence.h"

#include <cerrno>
#include <new>

namespace paceline::verbs {

int Presence::make() noexcept {
  void* const page =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return errno;
  if (::madvise(page, kBytes, MADV_WIPEONFORK) != 0) {
    const int error = errno;
    ::munmap(page, kBytes);
    return error;
  }
  marks_ = new (page) Marks{1, 1};
  return 0;
}

}  // namespace paceline::verbs
