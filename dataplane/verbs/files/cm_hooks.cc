// write() and fstat(), for the descriptor that stands for /dev/infiniband/rdma_cm; see
// open_hooks.cc for the names. Calls for all other descriptors go straight on.

#include <sys/stat.h>
#include <unistd.h>

#include "dataplane/verbs/files/cm_device.h"
#include "dataplane/verbs/files/redirect.h"

namespace {

using paceline::files::CmDevice;
using paceline::files::next_function;

using Write = ssize_t(int, const void*, std::size_t);
using Fstat = int(int, struct stat*);

Write* next_write() {
  static Write* const real = next_function<Write>("write");
  return real;
}

// Before a signal handler may write.
[[gnu::constructor]] void look_up() { next_write(); }

}  // namespace

extern "C" {

PACELINE_EXPORTED ssize_t files_write(int file, const void* bytes,
                                      std::size_t size) __asm__("write");
ssize_t files_write(int file, const void* bytes, std::size_t size) {
  if (CmDevice::in_use() && CmDevice::is_command(file, bytes, size)) [[unlikely]] {
    return CmDevice::write(file, bytes, size);
  }
  return next_write()(file, bytes, size);
}

PACELINE_EXPORTED int files_fstat(int file, struct stat* out) __asm__("fstat");
int files_fstat(int file, struct stat* out) {
  static Fstat* const real = next_function<Fstat>("fstat");
  const int result = real(file, out);
  if (result == 0 && CmDevice::in_use()) CmDevice::disguise(file, *out);
  return result;
}

// For programs built before glibc 2.33. `version` is ignored: this machine has only one layout.
PACELINE_EXPORTED int files_fxstat(int version, int file, struct stat* out) __asm__("__fxstat");
int files_fxstat(int /*version*/, int file, struct stat* out) { return files_fstat(file, out); }

PACELINE_EXPORTED int files_fstat64(int file, struct stat* out) __asm__("fstat64")
    __attribute__((alias("fstat")));
PACELINE_EXPORTED int files_fxstat64(int version, int file, struct stat* out) __asm__("__fxstat64")
    __attribute__((alias("__fxstat")));

}  // extern "C"
