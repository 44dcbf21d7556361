// This process as a program that shares memory with a service: a map that may hold pages, where
// this machine lets it, and the service's view of what was prepared.
#pragma once

#include <cstddef>
#include <memory>

#include "dataplane/service/memory/region_view.h"
#include "dataplane/verbs/memory/registration_map.h"

namespace paceline::verbs::test {

inline std::uint64_t address_of(const void* at) { return reinterpret_cast<std::uintptr_t>(at); }

// Whether pages can be held here; says why not. Tests that need it return without it.
bool can_hold_pages();

// Private anonymous pages, as mmap gives them, unmapped at the end.
class Pages {
 public:
  explicit Pages(std::size_t pages);
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages();
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* data_;
  std::size_t bytes_;
};

// What the service maps of a registration.
std::unique_ptr<service::RegionView> view_of(RegistrationMap& map, const void* address,
                                             std::size_t bytes, const RegistrationMap::Held& held);
std::uint64_t bytes_shared(const RegistrationMap::Held& held);

}  // namespace paceline::verbs::test
