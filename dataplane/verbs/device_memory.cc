// Device memory (ibv_alloc_dm(3)): on hardware, memory of the NIC that a program reaches by copy
// alone. Ours is the library's: the service's copies to and from it pass no other program.
#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <memory>

#include "dataplane/verbs/context.h"
#include "dataplane/verbs/operations.h"
#include "dataplane/verbs/results.h"

namespace paceline::verbs {

namespace {

// mlx5, the hardware that programs know, copies words.
constexpr std::uint64_t kCopyUnit = 4;

struct DeviceMemory {
  ibv_dm dm{};  // first: programs hold its address
  std::byte* bytes = nullptr;
  std::size_t length = 0;  // as it was asked for
  std::size_t mapped = 0;

  static DeviceMemory& of(ibv_dm* dm) { return *reinterpret_cast<DeviceMemory*>(dm); }
  bool holds(std::uint64_t offset, std::size_t size) const {
    return offset <= length && size <= length - offset;
  }
};

int check_copy(const DeviceMemory& memory, std::uint64_t offset, std::size_t size) {
  if (!memory.holds(offset, size) || offset % kCopyUnit != 0 || size % kCopyUnit != 0) {
    return EINVAL;
  }
  return 0;
}

int copy_to(ibv_dm* dm, std::uint64_t offset, const void* from, std::size_t size) {
  DeviceMemory& memory = DeviceMemory::of(dm);
  if (const int error = check_copy(memory, offset, size); error != 0) return result(error);
  std::memcpy(memory.bytes + offset, from, size);
  return 0;
}

int copy_from(void* to, ibv_dm* dm, std::uint64_t offset, std::size_t size) {
  const DeviceMemory& memory = DeviceMemory::of(dm);
  if (const int error = check_copy(memory, offset, size); error != 0) return result(error);
  std::memcpy(to, memory.bytes + offset, size);
  return 0;
}

ibv_dm* allocate(ibv_context* context, const ibv_alloc_dm_attr& attr) {
  constexpr std::size_t kPage = 4096;
  if (attr.comp_mask != 0 || attr.length == 0) return refuse(EINVAL);
  if (attr.length > kMostDeviceMemory || (std::size_t{1} << attr.log_align_req) > kPage) {
    return refuse(ENOMEM);
  }
  auto memory = std::make_unique<DeviceMemory>();
  memory->length = attr.length;
  memory->mapped = (attr.length + kPage - 1) / kPage * kPage;
  void* const mapped =
      ::mmap(nullptr, memory->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return refuse(ENOMEM);
  memory->bytes = static_cast<std::byte*>(mapped);
  memory->dm.context = context;
  memory->dm.memcpy_to_dm = copy_to;
  memory->dm.memcpy_from_dm = copy_from;
  return &memory.release()->dm;
}

}  // namespace

ibv_dm* alloc_dm(ibv_context* context, ibv_alloc_dm_attr* attr) noexcept {
  return guarded(static_cast<ibv_dm*>(nullptr), [&] { return allocate(context, *attr); });
}

// Regions of it are to be deregistered before; what still comes for them finds no memory.
int free_dm(ibv_dm* dm) noexcept {
  const std::unique_ptr<DeviceMemory> memory(&DeviceMemory::of(dm));
  ::munmap(memory->bytes, memory->mapped);
  return 0;
}

// Its addresses begin with 0, the only way that the manual page has.
ibv_mr* reg_dm_mr(ibv_pd* pd, ibv_dm* dm, std::uint64_t offset, std::size_t length,
                  unsigned access) noexcept {
  const DeviceMemory& memory = DeviceMemory::of(dm);
  if ((access & IBV_ACCESS_ZERO_BASED) == 0) return refuse(EINVAL);
  if (!memory.holds(offset, length) || dm->context != pd->context) return refuse(EINVAL);
  const unsigned rest = access & ~static_cast<unsigned>(IBV_ACCESS_ZERO_BASED);
  return ibv_reg_mr_iova(pd, memory.bytes + offset, length, 0, static_cast<int>(rest));
}

}  // namespace paceline::verbs
