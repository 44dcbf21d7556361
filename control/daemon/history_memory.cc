#include "control/daemon/history_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "dataplane/attach/descriptor.h"

namespace paceline::daemon {

namespace {

// An open file of the right size whose blocks are there; `why` when it cannot be had.
attach::Descriptor file_of(const std::string& path, std::size_t bytes, std::string& why) {
  attach::Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  int error = file ? 0 : errno;
  struct stat facts {};
  if (error == 0 && ::fstat(file.get(), &facts) != 0) error = errno;
  const auto size = static_cast<off_t>(bytes);
  if (error == 0 && facts.st_size != size &&
      (::ftruncate(file.get(), 0) != 0 || ::ftruncate(file.get(), size) != 0)) {
    error = errno;
  }
  if (error == 0) error = ::posix_fallocate(file.get(), 0, size);
  if (error == 0) return file;
  why = fmt::format("{}: {}", path, std::strerror(error));
  return {};
}

// On a disk a page that was written back has to be asked for anew with its next write: to touch all
// of them beforehand would only write all of them to the disk.
bool stays_in_memory(const attach::Descriptor& file) {
  struct statfs facts {};
  return !file || (::fstatfs(file.get(), &facts) == 0 && facts.f_type == TMPFS_MAGIC);
}

}  // namespace

HistoryMemory::HistoryMemory(HistoryMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      what_(std::move(other.what_)) {}

HistoryMemory& HistoryMemory::operator=(HistoryMemory&& other) noexcept {
  if (this != &other) {
    unmap();
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    what_ = std::move(other.what_);
  }
  return *this;
}

HistoryMemory::~HistoryMemory() { unmap(); }

void HistoryMemory::unmap() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

HistoryMemory HistoryMemory::take(const std::string& path, std::size_t bytes) {
  HistoryMemory out;
  attach::Descriptor file;
  if (!path.empty()) file = file_of(path, bytes, out.what_);
  void* data = MAP_FAILED;
  if (file) {
    data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (data == MAP_FAILED) out.what_ = fmt::format("{}: {}", path, std::strerror(errno));
  }
  if (data == MAP_FAILED) {
    data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
  if (data == MAP_FAILED) throw std::bad_alloc();
#ifdef MADV_POPULATE_WRITE
  // No look waits for a page then. Linux before 5.14 cannot: its looks do.
  if (stays_in_memory(file)) static_cast<void>(::madvise(data, bytes, MADV_POPULATE_WRITE));
#endif
  out.data_ = static_cast<std::byte*>(data);
  out.size_ = bytes;
  return out;
}

}  // namespace paceline::daemon
