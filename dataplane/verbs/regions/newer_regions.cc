// Registration for programs built with rdma-core 60 and later: ibv_reg_mr_ex, and buffers that the
// library allocates. The header here may be older, so their types are declared below, and asm
// labels name the functions: a newer header has declarations of its own.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <memory>

#include "dataplane/verbs/abi/results.h"
#include "dataplane/verbs/regions/memory_region.h"

namespace paceline::verbs {

// struct ibv_mr_init_attr, and enum ibv_mr_init_attr_mask.
struct NewerRegion {
  std::size_t length;
  int access;
  std::uint64_t asked;  // which of those below count
  std::uint64_t iova;
  void* address;
  int file;
  std::uint64_t file_offset;
  void* dma_handle;
  struct NewerBuffer* buffer;  // programs built before rdma-core 64 do not have it
};
static_assert(sizeof(NewerRegion) == 72 && offsetof(NewerRegion, buffer) == 64);

namespace {

constexpr std::uint64_t kIova = 1U << 0U;
constexpr std::uint64_t kAddress = 1U << 1U;
constexpr std::uint64_t kFile = 1U << 2U;
constexpr std::uint64_t kFileOffset = 1U << 3U;
constexpr std::uint64_t kBuffer = 1U << 5U;

}  // namespace

// What programs hold as an ibv_buf.
struct NewerBuffer {
  ibv_pd* pd;
  void* address;
  std::size_t size;

  bool holds(const void* from, std::size_t length) const {
    const auto begin = reinterpret_cast<std::uintptr_t>(from);
    const auto own = reinterpret_cast<std::uintptr_t>(address);
    return begin >= own && begin - own <= size && length <= size - (begin - own);
  }
};

namespace {

ibv_mr* register_newer(ibv_pd* pd, const NewerRegion& r) {
  std::uint64_t asked = r.asked;
  if ((asked & kBuffer) != 0) {
    if (r.buffer->pd != pd || (asked & kAddress) == 0 || !r.buffer->holds(r.address, r.length)) {
      return refuse(EINVAL);
    }
    asked &= ~kBuffer;
  }
  // No handle for direct memory access exists here that could be given.
  if ((asked & ~(kIova | kAddress | kFile | kFileOffset)) != 0) return refuse(EOPNOTSUPP);
  const bool address = (asked & kAddress) != 0;
  if ((asked & kFile) != 0) {
    const bool complete = (asked & kFileOffset) != 0 && (asked & kIova) != 0;
    return refuse(address || !complete ? EINVAL : EOPNOTSUPP);
  }
  if (!address || (asked & kFileOffset) != 0) return refuse(EINVAL);
  const std::uint64_t iova =
      (asked & kIova) != 0 ? r.iova : reinterpret_cast<std::uintptr_t>(r.address);
  MemoryRegion* const region =
      register_memory(pd, r.address, r.length, iova, static_cast<unsigned>(r.access));
  return region == nullptr ? nullptr : &region->mr;
}

void* allocate(ibv_pd* pd, std::size_t size, NewerBuffer** out) {
  auto buffer = std::make_unique<NewerBuffer>(NewerBuffer{pd, nullptr, size});
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  if (const int error = ::posix_memalign(&buffer->address, page, size); error != 0) {
    return refuse(error);
  }
  *out = buffer.release();
  return (*out)->address;
}

}  // namespace

}  // namespace paceline::verbs

using paceline::verbs::NewerBuffer;
using paceline::verbs::NewerRegion;

PACELINE_VERBS_EXPORT ibv_mr* newer_reg_mr_ex(ibv_pd* pd,
                                              NewerRegion* attr) __asm__("ibv_reg_mr_ex");
ibv_mr* newer_reg_mr_ex(ibv_pd* pd, NewerRegion* attr) {
  return paceline::verbs::register_newer(pd, *attr);
}

PACELINE_VERBS_EXPORT ibv_mr* newer_reg_buf_mr(ibv_pd* pd, NewerBuffer* buf, void* addr,
                                               std::size_t length,
                                               int access) __asm__("ibv_reg_buf_mr");
ibv_mr* newer_reg_buf_mr(ibv_pd* pd, NewerBuffer* buf, void* addr, std::size_t length, int access) {
  using namespace paceline::verbs;
  return register_newer(pd, {length, access, kBuffer | kAddress, 0, addr, -1, 0, nullptr, buf});
}

PACELINE_VERBS_EXPORT void* newer_alloc_buf(ibv_pd* pd, std::size_t size,
                                            NewerBuffer** buf) __asm__("ibv_alloc_buf");
void* newer_alloc_buf(ibv_pd* pd, std::size_t size, NewerBuffer** buf) {
  return paceline::verbs::guarded(static_cast<void*>(nullptr),
                                  [&] { return paceline::verbs::allocate(pd, size, buf); });
}

PACELINE_VERBS_EXPORT void newer_free_buf(NewerBuffer* buf) __asm__("ibv_free_buf");
void newer_free_buf(NewerBuffer* buf) {
  std::free(buf->address);
  delete buf;
}

// No file is behind such a buffer.
PACELINE_VERBS_EXPORT int newer_export_buf(NewerBuffer* buf) __asm__("ibv_export_buf_dmabuf_fd");
int newer_export_buf(NewerBuffer* /*buf*/) {
  errno = ENODATA;
  return -1;
}
