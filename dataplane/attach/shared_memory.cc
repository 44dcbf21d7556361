#include "dataplane/attach/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#ifndef F_SEAL_FUTURE_WRITE  // Linux 5.1; older headers do not name it
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace paceline::attach {

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : descriptor_(std::move(other.descriptor_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  if (this == &other) return *this;
  unmap();
  descriptor_ = std::move(other.descriptor_);
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  return *this;
}

SharedMemory::~SharedMemory() { unmap(); }

void SharedMemory::unmap() {
  if (data_ != nullptr) ::munmap(data_, size_);
  data_ = nullptr;
  size_ = 0;
}

bool SharedMemory::make(const char* name, std::size_t bytes, SharedWrite write) {
  Descriptor fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) return false;
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (at == MAP_FAILED) return false;
  unmap();
  data_ = static_cast<std::byte*>(at);
  size_ = bytes;
  descriptor_ = std::move(fd);
  const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL |
                    (write == SharedWrite::maker_only ? F_SEAL_FUTURE_WRITE : 0);
  return ::fcntl(descriptor_.get(), F_ADD_SEALS, seals) == 0;
}

bool SharedMemory::open(Descriptor descriptor, std::size_t bytes, bool writable) {
  const int seals = ::fcntl(descriptor.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    errno = EPERM;
    return false;
  }
  struct stat status {};
  if (::fstat(descriptor.get(), &status) != 0) return false;
  if (bytes == 0 || static_cast<std::size_t>(status.st_size) < bytes) {
    errno = ENODATA;
    return false;
  }
  void* const at = ::mmap(nullptr, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
                          descriptor.get(), 0);
  if (at == MAP_FAILED) return false;
  unmap();
  data_ = static_cast<std::byte*>(at);
  size_ = bytes;
  descriptor_ = std::move(descriptor);
  return true;
}

}  // namespace paceline::attach
