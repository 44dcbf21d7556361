// read() and pread(), for counter files; see open_hooks.cc for the names. Calls for all other
// descriptors go straight on.

#include <sys/types.h>
#include <unistd.h>

#include <cerrno>

#include "dataplane/verbs/files/counter_file.h"

static_assert(sizeof(off_t) == 8);

namespace {

using paceline::files::CounterFile;
using paceline::files::next_function;

using Read = ssize_t(int, void*, std::size_t);

Read* next_read() {
  static Read* const real = next_function<Read>("read");
  return real;
}

// Looks the function up before a signal handler may call read().
[[gnu::constructor]] void look_up_read() { next_read(); }

// False, with errno: the file cannot be read afresh.
bool fresh(int file, off_t at) {
  if (!CounterFile::may_be(file)) [[likely]]
    return true;
  const int before = errno;
  const int error = CounterFile::refresh(file, at);
  errno = error == 0 ? before : error;
  return error == 0;
}

ssize_t pread_behind(int file, void* out, std::size_t size, off_t at) {
  using Function = ssize_t(int, void*, std::size_t, off_t);
  static Function* const real = next_function<Function>("pread");
  return fresh(file, at) ? real(file, out, size, at) : -1;
}

}  // namespace

extern "C" {

PACELINE_EXPORTED ssize_t files_read(int file, void* out, std::size_t size) __asm__("read");
ssize_t files_read(int file, void* out, std::size_t size) {
  return fresh(file, -1) ? next_read()(file, out, size) : -1;
}

PACELINE_EXPORTED ssize_t files_pread(int file, void* out, std::size_t size,
                                      off_t at) __asm__("pread");
ssize_t files_pread(int file, void* out, std::size_t size, off_t at) {
  return pread_behind(file, out, size, at);
}

// For _FORTIFY_SOURCE: as in glibc, too small a buffer ends the program.
PACELINE_EXPORTED ssize_t files_read_chk(int file, void* out, std::size_t size,
                                         std::size_t room) __asm__("__read_chk");
ssize_t files_read_chk(int file, void* out, std::size_t size, std::size_t room) {
  if (size > room) __builtin_trap();
  return files_read(file, out, size);
}

PACELINE_EXPORTED ssize_t files_pread_chk(int file, void* out, std::size_t size, off_t at,
                                          std::size_t room) __asm__("__pread_chk");
ssize_t files_pread_chk(int file, void* out, std::size_t size, off_t at, std::size_t room) {
  if (size > room) __builtin_trap();
  return pread_behind(file, out, size, at);
}

PACELINE_EXPORTED ssize_t files_pread64(int file, void* out, std::size_t size,
                                        off_t at) __asm__("pread64")
    __attribute__((alias("pread")));
PACELINE_EXPORTED ssize_t files_pread64_chk(int file, void* out, std::size_t size, off_t at,
                                            std::size_t room) __asm__("__pread64_chk")
    __attribute__((alias("__pread_chk")));

}  // extern "C"
