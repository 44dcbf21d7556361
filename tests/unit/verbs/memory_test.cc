// A program without memory: what it asks fails or is done, and the session continues.
// The thread sanitizer has an operator new that cannot be replaced.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PACELINE_KEEPS_OPERATOR_NEW
#endif
#endif

#ifndef PACELINE_KEEPS_OPERATOR_NEW

#include <cerrno>
#include <cstdlib>
#include <new>

#include "tests/unit/verbs/open_device.h"

using namespace paceline;
using namespace paceline::verbs_test;

namespace {

thread_local std::size_t allowed = ~std::size_t{0};  // bytes that one allocation may have

void* allocate(std::size_t bytes) {
  return bytes > allowed ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
}
void* allocate_or_throw(std::size_t bytes) {
  void* const memory = allocate(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// For the whole program; all of them, so that what one has allocated another of them frees.
void* operator new(std::size_t bytes) { return allocate_or_throw(bytes); }
void* operator new[](std::size_t bytes) { return allocate_or_throw(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

TEST_CASE("a program out of memory keeps its session, and can give back what it has", "[verbs]") {
  OpenDevice device;
  ibv_cq* const first = ibv_create_cq(device.context, 8, nullptr, nullptr, 0);
  ibv_cq* const second = ibv_create_cq(device.context, 8, nullptr, nullptr, 0);
  REQUIRE((first != nullptr && second != nullptr));
  // Refused are allocations of any size, then those of a message only.
  for (const std::size_t most : {std::size_t{0}, std::size_t{4096}}) {
    allowed = most;
    ibv_cq* const made = ibv_create_cq(device.context, 8, nullptr, nullptr, 0);
    const int error = errno;
    ibv_cq* const gone = most == 0 ? first : second;
    const int destroyed = ibv_destroy_cq(gone);
    allowed = ~std::size_t{0};
    CHECK(destroyed == 0);
    if (made == nullptr) {
      CHECK(error == ENOMEM);
    } else {
      CHECK(ibv_destroy_cq(made) == 0);
    }
  }
  ibv_cq* const after = ibv_create_cq(device.context, 8, nullptr, nullptr, 0);
  REQUIRE(after != nullptr);
  CHECK(ibv_destroy_cq(after) == 0);
}

#endif  // PACELINE_KEEPS_OPERATOR_NEW
