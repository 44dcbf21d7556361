// Memory that two processes map: a memfd of fixed size. The maker seals it, so that the other can
// neither shrink it while the maker uses it (SIGBUS) nor grow it; the receiver checks the seals.
#pragma once

#include <cstddef>
#include <span>

#include "dataplane/attach/descriptors/descriptor.h"

namespace paceline::attach {

enum class SharedWrite : bool { both, maker_only };

class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  // Zeroed memory of `bytes` (> 0), mapped and sealed against any change of size. maker_only: no
  // receiver of the descriptor can write. `name` shows in /proc. False, with errno.
  bool make(const char* name, std::size_t bytes, SharedWrite write = SharedWrite::both);
  // Maps the first `bytes` of another's memory. False with errno: EPERM if it is not sealed against
  // shrinking, ENODATA if it is smaller.
  bool open(Descriptor descriptor, std::size_t bytes, bool writable);

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::span<std::byte> bytes() const { return {data_, size_}; }
  int descriptor() const { return descriptor_.get(); }
  // Once it is mapped, only a receiver still needs the descriptor.
  void close_descriptor() { descriptor_.reset(); }

 private:
  void unmap();
  Descriptor descriptor_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace paceline::attach
