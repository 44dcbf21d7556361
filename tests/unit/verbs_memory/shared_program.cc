#include "tests/unit/verbs_memory/shared_program.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cstring>
#include <iostream>
#include <stdexcept>

namespace paceline::verbs::test {

bool can_hold_pages() {
  PageHold hold;
  const attach::Descriptor device(::open("/dev/userfaultfd", O_RDWR | O_CLOEXEC));
  const int error = hold.open(device);
  if (error != 0) std::cout << "skipped: no userfaultfd here: " << std::strerror(error) << "\n";
  return error == 0;
}

Pages::Pages(std::size_t pages)
    : data_(static_cast<std::byte*>(::mmap(nullptr, pages * 4096, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
      bytes_(pages * 4096) {
  if (data_ == MAP_FAILED) throw std::runtime_error("mmap");
}
Pages::~Pages() { ::munmap(data_, bytes_); }

std::unique_ptr<service::RegionView> view_of(RegistrationMap& map, const void* address,
                                             std::size_t bytes, const RegistrationMap::Held& held) {
  auto view = std::make_unique<service::RegionView>();
  const int error = view->open(address_of(address), bytes, held.extents(), map.descriptor());
  if (error != 0) throw std::runtime_error(std::strerror(error));
  return view;
}

std::uint64_t bytes_shared(const RegistrationMap::Held& held) {
  std::uint64_t bytes = 0;
  for (const attach::Extent& extent : held.extents()) {
    if (extent.kind == attach::ExtentKind::shared) bytes += extent.length;
  }
  return bytes;
}

}  // namespace paceline::verbs::test
