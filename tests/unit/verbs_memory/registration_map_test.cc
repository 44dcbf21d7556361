#include "dataplane/verbs/memory/registration_map.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/unit/verbs_memory/hammer.h"
#include "tests/unit/verbs_memory/shared_program.h"

namespace paceline::verbs::test {
namespace {

using attach::ExtentKind;

std::unique_ptr<RegistrationMap> sharing_map() {
  auto map = std::make_unique<RegistrationMap>(MemoryMode::automatic);
  map->hold_with({});
  return map;
}

std::byte pattern(std::size_t i, unsigned first) {
  return static_cast<std::byte>((first + i * 7 + i / 4096) % 256);
}
void fill(std::byte* memory, std::size_t bytes, unsigned first) {
  for (std::size_t i = 0; i < bytes; ++i) memory[i] = pattern(i, first);
}
bool filled(const std::byte* memory, std::size_t bytes, unsigned first) {
  for (std::size_t i = 0; i < bytes; ++i) {
    if (memory[i] != pattern(i, first)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("the whole pages inside a registration are shared, its edges are not",
          "[memory][may_skip]") {
  if (!can_hold_pages()) {
    WARN("skipped: pages of this machine cannot be held");
    return;
  }
  const auto map = sharing_map();
  const Pages memory(8);
  fill(memory.data(), memory.bytes(), 1);
  RegistrationMap::Held held;
  REQUIRE(map->prepare(address_of(memory.data()) + 100, 5 * kPage, held) == 0);
  REQUIRE(held.extents().size() == 3);
  CHECK(held.extents()[0].kind == ExtentKind::by_copy);
  CHECK(held.extents()[0].length == kPage - 100);
  CHECK(held.extents()[1].kind == ExtentKind::shared);
  CHECK(held.extents()[1].length == 4 * kPage);
  CHECK(held.extents()[2].length == 100);
  CHECK(filled(memory.data(), memory.bytes(), 1));
  {
    const auto view = view_of(*map, memory.data() + 100, 5 * kPage, held);
    CHECK(view->at(0, 1) == nullptr);
    CHECK(view->at(kPage - 101, 2) == nullptr);
    std::byte* const there = view->at(kPage - 100, 4 * kPage);
    REQUIRE(there != nullptr);
    CHECK(view->at(kPage - 100, 4 * kPage + 1) == nullptr);
    CHECK(std::memcmp(there, memory.data() + kPage, 4 * kPage) == 0);
    there[17] = std::byte{0xA5};
    CHECK(memory.data()[kPage + 17] == std::byte{0xA5});
    memory.data()[2 * kPage] = std::byte{0x5A};
    CHECK(there[kPage] == std::byte{0x5A});
  }
  map->release(held);
  CHECK(memory.data()[kPage + 17] == std::byte{0xA5});
  CHECK(memory.data()[2 * kPage] == std::byte{0x5A});
  memory.data()[kPage + 17] = pattern(kPage + 17, 1);
  memory.data()[2 * kPage] = pattern(2 * kPage, 1);
  CHECK(filled(memory.data(), memory.bytes(), 1));
  // Private memory again: what is given back to the kernel comes back as zeroes.
  REQUIRE(::madvise(memory.data() + kPage, kPage, MADV_DONTNEED) == 0);
  CHECK(memory.data()[kPage] == std::byte{0});
  CHECK(map->counters().returns == 1);
  CHECK(map->counters().kept == 0);
}

TEST_CASE("what was taken back is one mapping", "[memory][may_skip]") {
  if (!can_hold_pages()) {
    WARN("skipped: pages of this machine cannot be held");
    return;
  }
  const auto map = sharing_map();
  const Pages memory(2048);
  fill(memory.data(), memory.bytes(), 1);
  AddressMap addresses;
  REQUIRE(addresses.open());
  RegistrationMap::Held held;
  std::size_t mappings = 0;
  for (int round = 0; round < 3; ++round) {
    REQUIRE(map->prepare(address_of(memory.data()) + 1, memory.bytes() - 2, held) == 0);
    CHECK(held.extents().size() == 3);
    map->release(held);
    if (round == 0) mappings = addresses.count();
    CHECK(addresses.count() == mappings);
  }
  CHECK(filled(memory.data(), memory.bytes(), 1));
  Mapping mapping;
  REQUIRE(addresses.covering(address_of(memory.data()) + kPage, mapping));
  CHECK(mapping.end - mapping.begin >= memory.bytes() - 2 * kPage);
}

TEST_CASE("what cannot be shared is copied, what is not there is refused", "[memory][may_skip]") {
  if (!can_hold_pages()) {
    WARN("skipped: pages of this machine cannot be held");
    return;
  }
  const auto map = sharing_map();
  const auto copied = [&](const void* at, std::size_t bytes) {
    RegistrationMap::Held held;
    const int error = map->prepare(address_of(at), bytes, held);
    const bool all = error == 0 && held.extents().size() == 1 &&
                     held.extents()[0].kind == ExtentKind::by_copy &&
                     held.extents()[0].length == bytes;
    map->release(held);
    return all;
  };
  const Pages memory(4);
  CHECK(copied(memory.data() + 1, 2 * kPage - 2));  // no page is whole
  CHECK_FALSE(copied(memory.data() + 1, 2 * kPage - 1));
  const attach::Descriptor file(::memfd_create("other", MFD_CLOEXEC));
  REQUIRE(::ftruncate(file.get(), 4 * kPage) == 0);
  for (const int flags : {MAP_SHARED, MAP_PRIVATE}) {
    void* const at = ::mmap(nullptr, 4 * kPage, PROT_READ | PROT_WRITE, flags, file.get(), 0);
    CHECK(copied(at, 4 * kPage));
    ::munmap(at, 4 * kPage);
  }
  REQUIRE(::mprotect(memory.data(), 2 * kPage, PROT_READ) == 0);
  CHECK(copied(memory.data(), 2 * kPage));
  RegistrationMap::Held held;
  // A range of pages of different kinds: each kind is registered in its own way.
  REQUIRE(map->prepare(address_of(memory.data()), 4 * kPage, held) == 0);
  CHECK(bytes_shared(held) == 2 * kPage);
  map->release(held);
  REQUIRE(::mprotect(memory.data() + kPage, kPage, PROT_NONE) == 0);
  CHECK(map->prepare(address_of(memory.data()), 4 * kPage, held) == EFAULT);
  CHECK(map->prepare(16, 100, held) == EFAULT);
  CHECK(map->prepare(address_of(memory.data()), 0, held) == EINVAL);
  CHECK(map->prepare(~std::uint64_t{0} - 10, 100, held) == EINVAL);
  CHECK(map->counters().shared_bytes == 0);

  RegistrationMap by_copy(MemoryMode::copy);
  by_copy.hold_with({});
  CHECK(by_copy.descriptor() == -1);
  REQUIRE(by_copy.prepare(address_of(memory.data()) + 2 * kPage, 2 * kPage, held) == 0);
  CHECK(bytes_shared(held) == 0);
  by_copy.release(held);
}

TEST_CASE("registrations that overlap share what they share", "[memory][may_skip]") {
  if (!can_hold_pages()) {
    WARN("skipped: pages of this machine cannot be held");
    return;
  }
  const auto map = sharing_map();
  const Pages memory(16);
  fill(memory.data(), memory.bytes(), 3);
  RegistrationMap::Held small;
  RegistrationMap::Held large;
  RegistrationMap::Held edge;
  REQUIRE(map->prepare(address_of(memory.data()) + 4 * kPage, 4 * kPage, small) == 0);
  // Begins within a page that is shared already: all of it is.
  REQUIRE(map->prepare(address_of(memory.data()) + 6 * kPage + 50, 8 * kPage, large) == 0);
  CHECK(bytes_shared(large) == 8 * kPage - 50);
  // Reaches into a page that is copied for another one.
  REQUIRE(map->prepare(address_of(memory.data()) + 14 * kPage, 2 * kPage, edge) == 0);
  CHECK(bytes_shared(edge) == kPage);
  {
    const auto first = view_of(*map, memory.data() + 4 * kPage, 4 * kPage, small);
    const auto second = view_of(*map, memory.data() + 6 * kPage + 50, 8 * kPage, large);
    CHECK(std::memcmp(second->at(0, kPage), first->at(2 * kPage + 50, kPage), kPage) == 0);
    *second->at(0, 1) = std::byte{77};
    CHECK(*first->at(2 * kPage + 50, 1) == std::byte{77});
    CHECK(memory.data()[6 * kPage + 50] == std::byte{77});
    *second->at(0, 1) = pattern(6 * kPage + 50, 3);
  }
  map->release(small);
  CHECK(map->counters().shared_bytes == 11 * kPage);  // its pages are in use
  {
    const auto second = view_of(*map, memory.data() + 6 * kPage + 50, 8 * kPage, large);
    CHECK(std::memcmp(second->at(0, kPage), memory.data() + 6 * kPage + 50, kPage) == 0);
  }
  map->release(large);
  map->release(edge);
  CHECK(map->counters().shared_bytes == 0);
  CHECK(filled(memory.data(), memory.bytes(), 3));
  // Nobody copies that page any more.
  REQUIRE(map->prepare(address_of(memory.data()) + 14 * kPage, 2 * kPage, edge) == 0);
  CHECK(bytes_shared(edge) == 2 * kPage);
  map->release(edge);
}

TEST_CASE("inner pages of an array on the stack are shared", "[memory][threads][may_skip]") {
  if (!can_hold_pages()) {
    WARN("skipped: pages of this machine cannot be held");
    return;
  }
  const auto map = sharing_map();
  const auto on_this_stack = [&] {
    std::byte array[6 * kPage];
    fill(array, sizeof array, 9);
    RegistrationMap::Held held;
    REQUIRE(map->prepare(address_of(array), sizeof array, held) == 0);
    CHECK(bytes_shared(held) >= 4 * kPage);
    array[3 * kPage] ^= std::byte{0xFF};
    {
      const auto view = view_of(*map, array, sizeof array, held);
      CHECK(*view->at(3 * kPage, 1) == array[3 * kPage]);
    }
    map->release(held);
    array[3 * kPage] ^= std::byte{0xFF};
    CHECK(filled(array, sizeof array, 9));
  };
  on_this_stack();
  std::thread(on_this_stack).join();
}

TEST_CASE("registered memory may go, move and come again", "[memory][may_skip]") {
  if (!can_hold_pages()) {
    WARN("skipped: pages of this machine cannot be held");
    return;
  }
  const auto map = sharing_map();
  RegistrationMap::Held held;

  SECTION("unmapped, and other memory in its place") {
    Pages memory(8);
    fill(memory.data(), memory.bytes(), 1);
    REQUIRE(map->prepare(address_of(memory.data()), memory.bytes(), held) == 0);
    auto before = view_of(*map, memory.data(), memory.bytes(), held);
    REQUIRE(::mmap(memory.data(), memory.bytes(), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == memory.data());
    // The old registration keeps the old pages, as hardware would.
    CHECK(filled(before->at(0, memory.bytes()), memory.bytes(), 1));
    RegistrationMap::Held again;
    REQUIRE(map->prepare(address_of(memory.data()), memory.bytes(), again) == 0);
    CHECK(bytes_shared(again) == memory.bytes());
    CHECK(again.extents()[0].offset != held.extents()[0].offset);
    fill(memory.data(), memory.bytes(), 2);
    before.reset();
    map->release(held);
    CHECK(filled(memory.data(), memory.bytes(), 2));
    map->release(again);
    CHECK(filled(memory.data(), memory.bytes(), 2));
    CHECK(map->counters().returns == 2);
  }
  SECTION("moved") {
    Pages memory(8);
    fill(memory.data(), memory.bytes(), 1);
    REQUIRE(map->prepare(address_of(memory.data()), memory.bytes(), held) == 0);
    const Pages elsewhere(16);
    // Half of it, and it grows there.
    REQUIRE(::mremap(memory.data() + 4 * kPage, 4 * kPage, 8 * kPage, MREMAP_MAYMOVE | MREMAP_FIXED,
                     elsewhere.data()) == elsewhere.data());
    elsewhere.data()[7 * kPage] = std::byte{1};
    map->release(held);
    CHECK(map->counters().kept == 1);
    CHECK(filled(memory.data(), 4 * kPage, 1));
    bool same = true;
    for (std::size_t i = 0; i < 4 * kPage; ++i) {
      same = same && elsewhere.data()[i] == pattern(i + 4 * kPage, 1);
    }
    CHECK(same);
    CHECK(elsewhere.data()[7 * kPage] == std::byte{1});
    // Pages of the file that are nobody's any more: by copy.
    REQUIRE(map->prepare(address_of(elsewhere.data()), 4 * kPage, held) == 0);
    CHECK(bytes_shared(held) == 0);
    map->release(held);
  }
  SECTION("grown where it is") {
    Pages memory(16);
    REQUIRE(::munmap(memory.data() + 8 * kPage, 8 * kPage) == 0);
    fill(memory.data(), 8 * kPage, 1);
    REQUIRE(map->prepare(address_of(memory.data()), 8 * kPage, held) == 0);
    REQUIRE(::mremap(memory.data(), 8 * kPage, 12 * kPage, 0) == memory.data());
    memory.data()[11 * kPage] = std::byte{5};  // a file of exact size would raise SIGBUS
    map->release(held);
    CHECK(filled(memory.data(), 8 * kPage, 1));
    CHECK(memory.data()[11 * kPage] == std::byte{5});
    CHECK(map->counters().kept == 1);
  }
  SECTION("freed while it is registered") {
    std::vector<std::byte> other(64);
    {
      std::vector<std::byte> buffer(1 << 20U);
      fill(buffer.data(), buffer.size(), 1);
      REQUIRE(map->prepare(address_of(buffer.data()), buffer.size(), held) == 0);
    }
    std::vector<std::byte> next(1 << 20U);
    CHECK(std::all_of(next.begin(), next.end(), [](std::byte b) { return b == std::byte{0}; }));
    map->release(held);
    CHECK(std::all_of(next.begin(), next.end(), [](std::byte b) { return b == std::byte{0}; }));
    next.resize(4 << 20U);
    CHECK(std::all_of(next.begin(), next.end(), [](std::byte b) { return b == std::byte{0}; }));
  }
  SECTION("read-only by the time it is released") {
    Pages memory(4);
    fill(memory.data(), memory.bytes(), 1);
    REQUIRE(map->prepare(address_of(memory.data()), memory.bytes(), held) == 0);
    REQUIRE(::mprotect(memory.data() + kPage, kPage, PROT_READ) == 0);
    map->release(held);
    CHECK(filled(memory.data(), memory.bytes(), 1));
    CHECK(map->counters().returns == 1);
    AddressMap addresses;
    REQUIRE(addresses.open());
    Mapping mapping;
    REQUIRE(addresses.covering(address_of(memory.data()) + kPage, mapping));
    CHECK_FALSE(mapping.writable);
    CHECK(mapping.inode == 0);
  }
}

TEST_CASE("many registrations come and go", "[memory][may_skip]") {
  if (!can_hold_pages()) {
    WARN("skipped: pages of this machine cannot be held");
    return;
  }
  const auto map = sharing_map();
  const Pages memory(512);
  fill(memory.data(), memory.bytes(), 1);
  std::vector<RegistrationMap::Held> all(64);
  for (int round = 0; round < 4; ++round) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      REQUIRE(map->prepare(address_of(memory.data()) + i * 7 * kPage + i * 64, 9 * kPage, all[i]) ==
              0);
    }
    for (std::size_t i = 0; i < all.size(); ++i) map->release(all[i * 37 % all.size()]);
    CHECK(map->counters().shared_bytes == 0);
  }
  CHECK(map->counters().kept == 0);
  CHECK(filled(memory.data(), memory.bytes(), 1));
}

TEST_CASE("what PACELINE_MEMORY may say", "[memory]") {
  MemoryMode mode = MemoryMode::copy;
  CHECK(parse_memory_mode(nullptr, mode));
  CHECK(mode == MemoryMode::automatic);
  CHECK(parse_memory_mode("share", mode));
  CHECK(mode == MemoryMode::share);
  CHECK(parse_memory_mode("copy", mode));
  CHECK(mode == MemoryMode::copy);
  CHECK_FALSE(parse_memory_mode("maybe", mode));
  // Insisting where nothing can be held.
  RegistrationMap map(MemoryMode::share);
  const Pages memory(2);
  RegistrationMap::Held held;
  CHECK(map.prepare(address_of(memory.data()), memory.bytes(), held) == EOPNOTSUPP);
}

}  // namespace paceline::verbs::test
