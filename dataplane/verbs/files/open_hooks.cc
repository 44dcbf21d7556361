// open() and its relatives. Each hook has the C library's name as its assembler name, so that
// headers which declare (or redirect) these names need not agree with us.

#include <dirent.h>
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "dataplane/verbs/files/cm_device.h"
#include "dataplane/verbs/files/counter_file.h"
#include "dataplane/verbs/files/redirect.h"

// A name with "64" at its end is then the same function.
static_assert(sizeof(off_t) == 8);

namespace {

using paceline::files::CounterFile;

bool has_mode(int flags) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }

mode_t mode_of(int flags, va_list arguments) {
  return has_mode(flags) ? va_arg(arguments, mode_t) : 0;
}

int open_behind(const char* path, int flags, mode_t mode) {
  using Function = int(const char*, int, ...);
  static Function* const real = paceline::files::next_function<Function>("open");
  const paceline::files::Path seen(path);
  if (seen.is_connection_manager()) return paceline::files::CmDevice::open(flags);
  return CounterFile::in_place_of(real(seen.get(), flags, mode), seen, flags);
}

int openat_behind(int folder, const char* path, int flags, mode_t mode) {
  using Function = int(int, const char*, int, ...);
  static Function* const real = paceline::files::next_function<Function>("openat");
  const paceline::files::Path seen(path);
  if (seen.is_connection_manager()) return paceline::files::CmDevice::open(flags);
  return CounterFile::in_place_of(real(folder, seen.get(), flags, mode), seen, flags);
}

}  // namespace

extern "C" {

PACELINE_EXPORTED int files_open(const char* path, int flags, ...) __asm__("open");
int files_open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_behind(path, flags, mode);
}

PACELINE_EXPORTED int files_openat(int folder, const char* path, int flags, ...) __asm__("openat");
int files_openat(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return openat_behind(folder, path, flags, mode);
}

// Programs built with _FORTIFY_SOURCE call this if there is no mode.
PACELINE_EXPORTED int files_open_2(const char* path, int flags) __asm__("__open_2");
int files_open_2(const char* path, int flags) { return open_behind(path, flags, 0); }

PACELINE_EXPORTED int files_openat_2(int folder, const char* path, int flags) __asm__("__openat_2");
int files_openat_2(int folder, const char* path, int flags) {
  return openat_behind(folder, path, flags, 0);
}

PACELINE_EXPORTED FILE* files_fopen(const char* path, const char* mode) __asm__("fopen");
FILE* files_fopen(const char* path, const char* mode) {
  using Function = FILE*(const char*, const char*);
  static Function* const real = paceline::files::next_function<Function>("fopen");
  const paceline::files::Path seen(path);
  std::FILE* const stream = real(seen.get(), mode);
  if (stream == nullptr || mode[0] != 'r' || std::strchr(mode, '+') != nullptr) return stream;
  const int flags = O_RDONLY | (std::strchr(mode, 'e') != nullptr ? O_CLOEXEC : 0);
  const int own = ::fileno(stream);
  const int copy = seen.is_redirected() || seen.may_lead_in() ? ::dup(own) : -1;
  const int counter = CounterFile::in_place_of(copy, seen, flags);
  if (copy < 0) return stream;
  if (counter == copy) {  // any other file
    ::close(copy);
    return stream;
  }
  std::fclose(stream);
  return counter < 0 ? nullptr : ::fdopen(counter, mode);
}

PACELINE_EXPORTED DIR* files_opendir(const char* path) __asm__("opendir");
DIR* files_opendir(const char* path) {
  using Function = DIR*(const char*);
  static Function* const real = paceline::files::next_function<Function>("opendir");
  const paceline::files::Path seen(path);
  return real(seen.get());
}

using Filter = int(const dirent*);
using Order = int(const dirent**, const dirent**);

PACELINE_EXPORTED int files_scandir(const char* path, dirent*** names, Filter* filter,
                                    Order* order) __asm__("scandir");
int files_scandir(const char* path, dirent*** names, Filter* filter, Order* order) {
  using Function = int(const char*, dirent***, Filter*, Order*);
  static Function* const real = paceline::files::next_function<Function>("scandir");
  const paceline::files::Path seen(path);
  return real(seen.get(), names, filter, order);
}

PACELINE_EXPORTED int files_scandirat(int folder, const char* path, dirent*** names, Filter* filter,
                                      Order* order) __asm__("scandirat");
int files_scandirat(int folder, const char* path, dirent*** names, Filter* filter, Order* order) {
  using Function = int(int, const char*, dirent***, Filter*, Order*);
  static Function* const real = paceline::files::next_function<Function>("scandirat");
  const paceline::files::Path seen(path);
  return real(folder, seen.get(), names, filter, order);
}

PACELINE_EXPORTED int files_open64(const char* path, int flags, ...) __asm__("open64")
    __attribute__((alias("open")));
PACELINE_EXPORTED int files_openat64(int folder, const char* path, int flags,
                                     ...) __asm__("openat64") __attribute__((alias("openat")));
PACELINE_EXPORTED int files_open64_2(const char* path, int flags) __asm__("__open64_2")
    __attribute__((alias("__open_2")));
PACELINE_EXPORTED int files_openat64_2(int folder, const char* path,
                                       int flags) __asm__("__openat64_2")
    __attribute__((alias("__openat_2")));
PACELINE_EXPORTED FILE* files_fopen64(const char* path, const char* mode) __asm__("fopen64")
    __attribute__((alias("fopen")));
PACELINE_EXPORTED int files_scandir64(const char* path, dirent*** names, Filter* filter,
                                      Order* order) __asm__("scandir64")
    __attribute__((alias("scandir")));
PACELINE_EXPORTED int files_scandirat64(int folder, const char* path, dirent*** names,
                                        Filter* filter, Order* order) __asm__("scandirat64")
    __attribute__((alias("scandirat")));

}  // extern "C"
