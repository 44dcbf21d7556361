// The table of regions by itself: keys, changes in place, memory windows.
#include "dataplane/transport/memory/region.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <set>
#include <vector>

#include "dataplane/port/packet_pool.h"

namespace paceline::transport::test {
namespace {

constexpr KeySecret kSecret{{0x0706'0504'0302'0100ULL, 0x0F0E'0D0C'0B0A'0908ULL}};

std::uint32_t add(RegionTable& table, std::uint8_t rights = access::remote, std::uint32_t pd = 0) {
  return table.add_elided(0x1000, 0x1000, rights, pd);
}

// The test vector of the paper's reference code for the message 00 01 .. 07.
TEST_CASE("keys come from SipHash-2-4", "[transport]") {
  CHECK(sip_hash(kSecret, 0x0706'0504'0302'0100ULL) == 0x93F5'F579'9A93'2462ULL);
}

TEST_CASE("without a secret keys are index and generation", "[transport]") {
  RegionTable table;
  CHECK(add(table) == 0x001);
  CHECK(add(table) == 0x101);
  CHECK(table.remove(0x101));
  CHECK(table.find(0x101) == nullptr);
  CHECK(add(table) == 0x102);
  // The first key of the first place would be 0 after 255 others.
  std::uint32_t key = 0x001;
  for (int i = 0; i < 600; ++i) {
    REQUIRE(table.remove(key));
    key = add(table);
    REQUIRE(key != 0);
  }
}

TEST_CASE("drawn keys: found while they are there, refused before and after", "[transport]") {
  RegionTable table;
  table.draw_keys_from(kSecret);
  std::vector<std::uint32_t> live;
  std::set<std::uint32_t> all;
  for (int round = 0; round < 20'000; ++round) {
    // Grows to about 600, falls to 0, and again.
    const bool grows = round % 10'000 < 5'000 ? round % 8 != 0 : round % 8 == 0;
    if (grows || live.empty()) {
      const std::uint32_t key = add(table);
      REQUIRE(key != 0);
      REQUIRE(std::find(live.begin(), live.end(), key) == live.end());
      live.push_back(key);
      all.insert(key);
      if (live.size() > 600) {
        REQUIRE(table.remove(live.front()));
        live.erase(live.begin());
      }
    } else {
      const std::size_t at = static_cast<std::size_t>(round) * 7919 % live.size();
      REQUIRE(table.remove(live[at]));
      REQUIRE(table.find(live[at]) == nullptr);
      REQUIRE_FALSE(table.remove(live[at]));
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
  const std::set<std::uint32_t> now(live.begin(), live.end());
  for (const std::uint32_t key : all) REQUIRE((table.find(key) != nullptr) == now.contains(key));
}

TEST_CASE("drawn keys use all 32 bits, and nobody's tell those of another secret", "[transport]") {
  RegionTable one;
  RegionTable same;
  RegionTable other;
  one.draw_keys_from(kSecret);
  same.draw_keys_from(kSecret);
  other.draw_keys_from({{kSecret.words[0], kSecret.words[1] ^ 1U}});
  std::array<int, 32> ones{};
  int equal = 0;
  constexpr int kKeys = 4096;
  for (int i = 0; i < kKeys; ++i) {
    const std::uint32_t key = add(one);
    REQUIRE(key == add(same));
    equal += key == add(other) ? 1 : 0;
    for (unsigned bit = 0; bit < 32; ++bit) ones[bit] += static_cast<int>(key >> bit & 1U);
  }
  CHECK(equal == 0);
  // With 4096 fair coins, 1700 to 2400 heads are within 10 standard deviations.
  for (const int count : ones) CHECK((count > 1700 && count < 2400));
}

TEST_CASE("a region changes in place under the same key", "[transport]") {
  RegionTable table;
  const std::uint32_t key = add(table, access::remote_read, 4);
  CHECK_FALSE(table.find(key)->grants(4, access::remote_write, 0x1000, 8));
  REQUIRE(table.invalidate(key, 4, 0));
  REQUIRE(table.change(key, access::local_write | access::remote_write, 5));
  CHECK(table.find(key)->grants(5, access::remote_write, 0x1000, 8));
  CHECK_FALSE(table.find(key)->grants(5, access::remote_read, 0x1000, 8));
  CHECK_FALSE(table.find(key)->grants(4, access::remote_write, 0x1000, 8));
  CHECK(table.find(key)->grants(5, access::local_read, 0x1000, 8));
  CHECK_FALSE(table.change(key ^ 1U, 0, 5));
}

constexpr std::uint8_t kBindable = access::local_write | access::window_bind;

struct Windowed {
  explicit Windowed(WindowType type, bool secret = false) {
    if (secret) table.draw_keys_from(kSecret);
    region = table.add_plain(0x1000, memory, kBindable, 3);
    window = table.add_window(type, 3);
  }
  WindowBind bind() const {
    WindowBind b;
    b.key = (window & ~0xFFU) | ((window + 1) & 0xFFU);
    b.region = region;
    b.address = 0x1400;
    b.length = 0x200;
    b.access = access::remote_write;
    b.pd = 3;
    b.qp = 77;
    return b;
  }
  bool reaches(std::uint32_t key, std::uint32_t qp = 77, std::uint64_t address = 0x1400,
               std::uint64_t bytes = 0x200) const {
    const Region* const found = table.find(key);
    return found != nullptr && found->grants_peer(qp, 3, access::remote_write, address, bytes);
  }
  std::array<std::byte, 0x1000> memory{};
  RegionTable table;
  std::uint32_t region = 0;
  std::uint32_t window = 0;
};

TEST_CASE("a window grants its part of the region to peers, and nothing else", "[transport]") {
  for (const bool secret : {false, true}) {
    Windowed w(WindowType::one, secret);
    CHECK_FALSE(w.reaches(w.window));
    const WindowBind b = w.bind();
    REQUIRE(w.table.bind(b));
    CHECK(w.reaches(b.key));
    CHECK(w.reaches(b.key, 78));  // type 1: any queue pair of the domain
    CHECK_FALSE(w.reaches(w.window));
    CHECK_FALSE(w.reaches(b.key, 77, 0x13FF, 2));
    CHECK_FALSE(w.reaches(b.key, 77, 0x1500, 0x200));
    const Region* const bound = w.table.find(b.key);
    CHECK(bound->memory == w.memory.data() + 0x400);
    CHECK_FALSE(bound->grants(3, access::local_read, 0x1400, 1));
    CHECK_FALSE(bound->grants(3, access::remote_read, 0x1400, 1));
    CHECK_FALSE(bound->grants(4, access::remote_write, 0x1400, 1));
    CHECK_FALSE(w.reaches(w.region));  // which has no remote rights of its own
    // While it is bound the region stays as it is.
    CHECK_FALSE(w.table.remove(w.region));
    CHECK_FALSE(w.table.change(w.region, kBindable, 3));
    // No key of a window names a region that could be removed.
    CHECK_FALSE(w.table.remove(b.key));
    REQUIRE(w.table.remove_window(w.window));
    CHECK(w.table.find(b.key) == nullptr);
    CHECK_FALSE(w.table.remove_window(w.window));
    CHECK(w.table.remove(w.region));
  }
}

// Payloads may be on their way from what is taken away.
TEST_CASE("what takes memory away from peers ends the loans of it", "[transport]") {
  Windowed w(WindowType::two);
  PacketPool pool(4, 512);
  w.table.end_loans_of(pool);
  const auto ends = [&](const auto& change) {
    Packet* const packet = pool.alloc();
    packet->payload_bytes = 300;
    pool.lend(*packet, w.memory.data());
    REQUIRE(change());
    const bool ended = pool.lent() == 0;
    pool.free(packet);
    return ended;
  };
  const WindowBind b = w.bind();
  CHECK(ends([&] { return w.table.bind(b); }));
  CHECK(ends([&] { return w.table.invalidate(b.key, 3, 0, 77); }));
  CHECK(ends([&] { return w.table.remove_window(b.key); }));
  CHECK(ends([&] { return w.table.change(w.region, access::remote, 3); }));
  CHECK(ends([&] { return w.table.invalidate(w.region, 3, 0); }));
  CHECK(ends([&] { return w.table.remove(w.region); }));
  // What is refused, or adds to what there is, ends none.
  CHECK_FALSE(ends([&] { return !w.table.remove(w.region); }));
  CHECK_FALSE(ends([&] { return add(w.table) != 0; }));
}

TEST_CASE("a window of type 1 is bound again at will, of type 2 when it is free", "[transport]") {
  Windowed one(WindowType::one);
  WindowBind b = one.bind();
  REQUIRE(one.table.bind(b));
  const std::uint32_t before = b.key++;
  b.address = 0x1000;
  REQUIRE(one.table.bind(b));
  CHECK_FALSE(one.reaches(before));
  CHECK(one.reaches(b.key, 77, 0x1000));
  CHECK_FALSE(one.table.invalidate(b.key, 3, 0, 77));
  b.length = 0;
  ++b.key;
  REQUIRE(one.table.bind(b));
  CHECK_FALSE(one.reaches(b.key, 77, 0x1000, 0));
  CHECK(one.table.remove(one.region));

  Windowed two(WindowType::two);
  b = two.bind();
  REQUIRE(two.table.bind(b));
  CHECK(two.reaches(b.key));
  CHECK_FALSE(two.reaches(b.key, 78));  // bound by 77
  WindowBind again = b;
  ++again.key;
  CHECK_FALSE(two.table.bind(again));
  CHECK(two.reaches(b.key));
  CHECK_FALSE(two.table.invalidate(b.key, 3, access::remote_invalidate, 78));
  REQUIRE(two.table.invalidate(b.key, 3, access::remote_invalidate, 77));
  CHECK_FALSE(two.reaches(b.key));
  CHECK_FALSE(two.table.invalidate(b.key, 3, 0, 77));
  REQUIRE(two.table.bind(again));
  CHECK(two.reaches(again.key));
  CHECK_FALSE(two.reaches(b.key));
  REQUIRE(two.table.invalidate(again.key, 3, 0, 77));
  CHECK(two.table.remove(two.region));
}

TEST_CASE("a bind that is not allowed changes nothing", "[transport]") {
  Windowed w(WindowType::two);
  const std::uint32_t closed = w.table.add_plain(0x1000, w.memory, access::local_write, 3);
  const std::uint32_t readable = w.table.add_plain(0x1000, w.memory, access::window_bind, 3);
  const WindowBind good = w.bind();
  WindowBind b = good;
  SECTION("of another domain") { b.pd = 4; }
  SECTION("to a region that does not exist") { b.region ^= 0x7F00; }
  SECTION("to a region that does not allow it") { b.region = closed; }
  SECTION("to write where the owner may not") { b.region = readable; }
  SECTION("to a window") { b.region = w.window; }
  SECTION("beyond the region") { b.length = 0xC01; }
  SECTION("before it") { b.address = 0xFFF; }
  SECTION("round the end of the address space") { b.length = ~std::uint64_t{0}; }
  SECTION("to nothing") { b.length = 0; }
  SECTION("with local rights") { b.access |= access::local_write; }
  SECTION("of a window that does not exist") { b.key ^= 0x7F00; }
  SECTION("of a region") { b.key = w.region; }
  CHECK_FALSE(w.table.bind(b));
  CHECK_FALSE(w.reaches(b.key));
  CHECK(w.table.bind(good));
  CHECK(w.reaches(good.key));
}

// Keeps where it was asked.
struct Recorder final : MemoryProvider {
  MemoryResult read(const MemoryCaller&, std::uint64_t offset, std::span<std::byte>) override {
    last = offset;
    return MemoryResult::done;
  }
  MemoryResult write(const MemoryCaller&, std::uint64_t offset,
                     std::span<const std::byte>) override {
    last = offset;
    return MemoryResult::pending;
  }
  MemoryResult atomic(const MemoryCaller&, std::uint64_t offset, const AtomicOperation&,
                      std::uint64_t&) override {
    last = offset;
    return MemoryResult::done;
  }
  std::uint64_t last = 0;
};

TEST_CASE("a window over memory that is not at hand names the place in the region", "[transport]") {
  Recorder memory;
  RegionTable table;
  const std::uint32_t region = table.add_provided(0x1000, 0x1000, memory, kBindable, 3);
  WindowBind b;
  b.key = table.add_window(WindowType::one, 3);
  b.region = region;
  b.address = 0x1400;
  b.length = 0x200;
  b.access = access::remote_read;
  b.pd = 3;
  REQUIRE(table.bind(b));
  const Region* const window = table.find(b.key);
  REQUIRE(window->kind == RegionKind::provided);
  std::array<std::byte, 8> bytes{};
  std::uint64_t original = 0;
  CHECK(window->provider->read(1, 0x10, bytes) == MemoryResult::done);
  CHECK(memory.last == 0x410);
  CHECK(window->provider->write(1, 0x20, bytes) == MemoryResult::pending);
  CHECK(memory.last == 0x420);
  CHECK(window->provider->atomic(1, 0x28, {}, original) == MemoryResult::done);
  CHECK(memory.last == 0x428);
}

}  // namespace
}  // namespace paceline::transport::test
