// stat(), access(), readlink() and their relatives; see open_hooks.cc for the names.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "dataplane/verbs/files/redirect.h"

static_assert(sizeof(off_t) == 8);

namespace {

using paceline::files::next_function;
using paceline::files::Path;

// In the redirected tree device nodes are symbolic links, which must be followed (redirect.h).
int follow(const Path& path, int flags) {
  return path.is_node() ? flags & ~AT_SYMLINK_NOFOLLOW : flags;
}

int stat_behind(int folder, const char* path, struct stat* out, int flags) {
  using Function = int(int, const char*, struct stat*, int);
  static Function* const real = next_function<Function>("fstatat");
  const Path seen(path);
  return real(folder, seen.get(), out, follow(seen, flags));
}

ssize_t link_behind(int folder, const char* path, char* out, std::size_t room) {
  using Function = ssize_t(int, const char*, char*, std::size_t);
  static Function* const real = next_function<Function>("readlinkat");
  const Path seen(path);
  if (seen.is_node()) {  // the program expects a device node, not a link
    errno = EINVAL;
    return -1;
  }
  return real(folder, seen.get(), out, room);
}

char* real_path_behind(const char* path, char* out) {
  using Function = char*(const char*, char*);
  static Function* const real = next_function<Function>("realpath");
  const Path seen(path);
  return real(seen.get(), out);
}

}  // namespace

extern "C" {

PACELINE_EXPORTED int files_stat(const char* path, struct stat* out) __asm__("stat");
int files_stat(const char* path, struct stat* out) { return stat_behind(AT_FDCWD, path, out, 0); }

PACELINE_EXPORTED int files_lstat(const char* path, struct stat* out) __asm__("lstat");
int files_lstat(const char* path, struct stat* out) {
  return stat_behind(AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW);
}

PACELINE_EXPORTED int files_fstatat(int folder, const char* path, struct stat* out,
                                    int flags) __asm__("fstatat");
int files_fstatat(int folder, const char* path, struct stat* out, int flags) {
  return stat_behind(folder, path, out, flags);
}

// For programs built before glibc 2.33. `version` is ignored: this machine has only one layout.
PACELINE_EXPORTED int files_xstat(int version, const char* path,
                                  struct stat* out) __asm__("__xstat");
int files_xstat(int /*version*/, const char* path, struct stat* out) {
  return stat_behind(AT_FDCWD, path, out, 0);
}

PACELINE_EXPORTED int files_lxstat(int version, const char* path,
                                   struct stat* out) __asm__("__lxstat");
int files_lxstat(int /*version*/, const char* path, struct stat* out) {
  return stat_behind(AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW);
}

PACELINE_EXPORTED int files_fxstatat(int version, int folder, const char* path, struct stat* out,
                                     int flags) __asm__("__fxstatat");
int files_fxstatat(int /*version*/, int folder, const char* path, struct stat* out, int flags) {
  return stat_behind(folder, path, out, flags);
}

PACELINE_EXPORTED int files_statx(int folder, const char* path, int flags, unsigned mask,
                                  struct statx* out) __asm__("statx");
int files_statx(int folder, const char* path, int flags, unsigned mask, struct statx* out) {
  using Function = int(int, const char*, int, unsigned, struct statx*);
  static Function* const real = next_function<Function>("statx");
  const Path seen(path);
  return real(folder, seen.get(), follow(seen, flags), mask, out);
}

PACELINE_EXPORTED int files_access(const char* path, int mode) __asm__("access");
int files_access(const char* path, int mode) {
  using Function = int(const char*, int);
  static Function* const real = next_function<Function>("access");
  const Path seen(path);
  return real(seen.get(), mode);
}

PACELINE_EXPORTED int files_faccessat(int folder, const char* path, int mode,
                                      int flags) __asm__("faccessat");
int files_faccessat(int folder, const char* path, int mode, int flags) {
  using Function = int(int, const char*, int, int);
  static Function* const real = next_function<Function>("faccessat");
  const Path seen(path);
  return real(folder, seen.get(), mode, flags);
}

PACELINE_EXPORTED int files_euidaccess(const char* path, int mode) __asm__("euidaccess");
int files_euidaccess(const char* path, int mode) {
  return files_faccessat(AT_FDCWD, path, mode, AT_EACCESS);
}

PACELINE_EXPORTED ssize_t files_readlink(const char* path, char* out,
                                         std::size_t room) __asm__("readlink");
ssize_t files_readlink(const char* path, char* out, std::size_t room) {
  return link_behind(AT_FDCWD, path, out, room);
}

PACELINE_EXPORTED ssize_t files_readlinkat(int folder, const char* path, char* out,
                                           std::size_t room) __asm__("readlinkat");
ssize_t files_readlinkat(int folder, const char* path, char* out, std::size_t room) {
  return link_behind(folder, path, out, room);
}

// For shells that list files.
PACELINE_EXPORTED int files_chdir(const char* path) __asm__("chdir");
int files_chdir(const char* path) {
  using Function = int(const char*);
  static Function* const real = next_function<Function>("chdir");
  const Path seen(path);
  return real(seen.get());
}

PACELINE_EXPORTED char* files_realpath(const char* path, char* out) __asm__("realpath");
char* files_realpath(const char* path, char* out) { return real_path_behind(path, out); }

PACELINE_EXPORTED char* files_canonical(const char* path) __asm__("canonicalize_file_name");
char* files_canonical(const char* path) { return real_path_behind(path, nullptr); }

// Variants for _FORTIFY_SOURCE: `room` is the buffer's size. As in glibc, too small a buffer ends
// the program.
PACELINE_EXPORTED ssize_t files_readlink_chk(const char* path, char* out, std::size_t length,
                                             std::size_t room) __asm__("__readlink_chk");
ssize_t files_readlink_chk(const char* path, char* out, std::size_t length, std::size_t room) {
  if (length > room) __builtin_trap();
  return link_behind(AT_FDCWD, path, out, length);
}

PACELINE_EXPORTED ssize_t files_readlinkat_chk(int folder, const char* path, char* out,
                                               std::size_t length,
                                               std::size_t room) __asm__("__readlinkat_chk");
ssize_t files_readlinkat_chk(int folder, const char* path, char* out, std::size_t length,
                             std::size_t room) {
  if (length > room) __builtin_trap();
  return link_behind(folder, path, out, length);
}

PACELINE_EXPORTED char* files_realpath_chk(const char* path, char* out,
                                           std::size_t room) __asm__("__realpath_chk");
char* files_realpath_chk(const char* path, char* out, std::size_t room) {
  if (room < PATH_MAX) __builtin_trap();
  return real_path_behind(path, out);
}

// ls calls this for each file.
PACELINE_EXPORTED ssize_t files_getxattr(const char* path, const char* name, void* out,
                                         std::size_t room) __asm__("getxattr");
ssize_t files_getxattr(const char* path, const char* name, void* out, std::size_t room) {
  using Function = ssize_t(const char*, const char*, void*, std::size_t);
  static Function* const real = next_function<Function>("getxattr");
  const Path seen(path);
  return real(seen.get(), name, out, room);
}

PACELINE_EXPORTED ssize_t files_lgetxattr(const char* path, const char* name, void* out,
                                          std::size_t room) __asm__("lgetxattr");
ssize_t files_lgetxattr(const char* path, const char* name, void* out, std::size_t room) {
  using Function = ssize_t(const char*, const char*, void*, std::size_t);
  static Function* const real = next_function<Function>("lgetxattr");
  const Path seen(path);
  return real(seen.get(), name, out, room);
}

PACELINE_EXPORTED int files_stat64(const char* path, struct stat* out) __asm__("stat64")
    __attribute__((alias("stat")));
PACELINE_EXPORTED int files_lstat64(const char* path, struct stat* out) __asm__("lstat64")
    __attribute__((alias("lstat")));
PACELINE_EXPORTED int files_fstatat64(int folder, const char* path, struct stat* out,
                                      int flags) __asm__("fstatat64")
    __attribute__((alias("fstatat")));
PACELINE_EXPORTED int files_xstat64(int version, const char* path,
                                    struct stat* out) __asm__("__xstat64")
    __attribute__((alias("__xstat")));
PACELINE_EXPORTED int files_lxstat64(int version, const char* path,
                                     struct stat* out) __asm__("__lxstat64")
    __attribute__((alias("__lxstat")));
PACELINE_EXPORTED int files_fxstatat64(int version, int folder, const char* path, struct stat* out,
                                       int flags) __asm__("__fxstatat64")
    __attribute__((alias("__fxstatat")));
PACELINE_EXPORTED int files_eaccess(const char* path, int mode) __asm__("eaccess")
    __attribute__((alias("euidaccess")));

}  // extern "C"
