// Device memory: a device in software has only the machine's memory. So it consists of whole pages
// of the program, which the service maps when they are registered (process_memory.h) and reaches
// without a copy. Programs reach it by ibv_memcpy_to_dm and ibv_memcpy_from_dm, in words of four
// bytes, as NICs require.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>

#include "dataplane/verbs/abi/results.h"
#include "dataplane/verbs/device/context.h"
#include "dataplane/verbs/device/operations.h"
#include "dataplane/verbs/regions/memory_region.h"

namespace paceline::verbs {

namespace {

constexpr std::uint64_t kWord = 4;
constexpr std::uint32_t kPageShift = 12;

struct DeviceMemory {
  ibv_dm dm{};  // first: programs hold its address
  std::byte* bytes = nullptr;
  std::size_t length = 0;
  std::atomic<int> regions{0};

  static DeviceMemory& of(ibv_dm* dm) { return *reinterpret_cast<DeviceMemory*>(dm); }
  bool holds(std::uint64_t offset, std::uint64_t count) const {
    return offset <= length && count <= length - offset;
  }
};

int check_words(const DeviceMemory& memory, std::uint64_t offset, std::size_t count) {
  return offset % kWord != 0 || count % kWord != 0 || !memory.holds(offset, count) ? EINVAL : 0;
}

int memcpy_to_dm(ibv_dm* dm, std::uint64_t offset, const void* from, std::size_t count) {
  DeviceMemory& memory = DeviceMemory::of(dm);
  const int error = check_words(memory, offset, count);
  if (error == 0) std::memcpy(memory.bytes + offset, from, count);
  return result(error);
}

int memcpy_from_dm(void* to, ibv_dm* dm, std::uint64_t offset, std::size_t count) {
  const DeviceMemory& memory = DeviceMemory::of(dm);
  const int error = check_words(memory, offset, count);
  if (error == 0) std::memcpy(to, memory.bytes + offset, count);
  return result(error);
}

ibv_dm* make_memory(ibv_context* context, std::size_t length) {
  auto memory = std::make_unique<DeviceMemory>();
  void* const at =
      ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return refuse(ENOMEM);
  memory->bytes = static_cast<std::byte*>(at);
  memory->length = length;
  memory->dm.context = context;
  memory->dm.memcpy_to_dm = memcpy_to_dm;
  memory->dm.memcpy_from_dm = memcpy_from_dm;
  return &memory.release()->dm;
}

}  // namespace

ibv_dm* alloc_dm(ibv_context* context, ibv_alloc_dm_attr* attr) noexcept {
  if (attr->comp_mask != 0 || attr->log_align_req > kPageShift) return refuse(EOPNOTSUPP);
  if (attr->length == 0 || attr->length > kMostDeviceMemory) return refuse(EINVAL);
  return guarded(static_cast<ibv_dm*>(nullptr), [&] { return make_memory(context, attr->length); });
}

int free_dm(ibv_dm* dm) noexcept {
  DeviceMemory* const memory = &DeviceMemory::of(dm);
  if (memory->regions.load() != 0) return result(EBUSY);
  ::munmap(memory->bytes, memory->length);
  delete memory;
  return 0;
}

ibv_mr* reg_dm_mr(ibv_pd* pd, ibv_dm* dm, std::uint64_t offset, std::size_t length,
                  unsigned access) noexcept {
  DeviceMemory& memory = DeviceMemory::of(dm);
  // ibv_alloc_dm(3): such a region is always zero-based.
  if ((access & IBV_ACCESS_ZERO_BASED) == 0 || dm->context != pd->context ||
      !memory.holds(offset, length)) {
    return refuse(EINVAL);
  }
  access &= ~static_cast<unsigned>(IBV_ACCESS_ZERO_BASED);
  MemoryRegion* const region = register_memory(pd, memory.bytes + offset, length, 0, access);
  if (region == nullptr) return nullptr;
  region->users = &memory.regions;
  memory.regions.fetch_add(1);
  region->mr.addr = nullptr;
  return &region->mr;
}

}  // namespace paceline::verbs
