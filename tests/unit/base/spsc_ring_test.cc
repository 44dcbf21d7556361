#include "dataplane/base/containers/spsc_ring.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <numeric>
#include <span>
#include <thread>
#include <vector>

#include "dataplane/base/numbers/random.h"

namespace paceline {
namespace {

TEST_CASE("a ring holds a power of two of elements and no more") {
  SpscRing<int> ring(5);
  CHECK(ring.capacity() == 8);
  CHECK(ring.empty());
  for (int i = 0; i < 8; ++i) CHECK(ring.push(i));
  CHECK_FALSE(ring.push(8));
  CHECK(ring.size() == 8);
  for (int i = 0; i < 8; ++i) {
    int value = -1;
    CHECK(ring.pop(value));
    CHECK(value == i);
  }
  int value = -1;
  CHECK_FALSE(ring.pop(value));
  CHECK(value == -1);
}

TEST_CASE("a ring of one element alternates") {
  SpscRing<int> ring(1);
  for (int i = 0; i < 10; ++i) {
    CHECK(ring.push(i));
    CHECK_FALSE(ring.push(-1));
    int value = -1;
    CHECK(ring.pop(value));
    CHECK(value == i);
  }
}

TEST_CASE("a burst that does not fit is taken in part") {
  SpscRing<int> ring(4);
  const std::array<int, 6> six = {1, 2, 3, 4, 5, 6};
  CHECK(ring.push(std::span<const int>(six)) == 4);
  CHECK(ring.push(std::span<const int>(six)) == 0);
  std::array<int, 3> out{};
  CHECK(ring.pop(std::span<int>(out)) == 3);
  CHECK(out == std::array<int, 3>{1, 2, 3});
  CHECK(ring.push(std::span<const int>(six).subspan(4)) == 2);
  CHECK(ring.pop(std::span<int>(out)) == 3);
  CHECK(out == std::array<int, 3>{4, 5, 6});
  CHECK(ring.pop(std::span<int>(out)) == 0);
  CHECK(ring.push(std::span<const int>()) == 0);
}

TEST_CASE("random bursts behave as a bounded queue") {
  const std::uint64_t seed = GENERATE(1U, 2U, 3U, 4U);
  INFO("seed " << seed);
  Random random(seed);
  SpscRing<std::uint64_t> ring(1 + random.below(40));
  std::deque<std::uint64_t> model;
  std::uint64_t next = 0;
  for (int step = 0; step < 20'000; ++step) {
    std::vector<std::uint64_t> burst(random.below(20));
    if (random.below(2) == 0) {
      std::iota(burst.begin(), burst.end(), next);
      const std::size_t expected = std::min(burst.size(), ring.capacity() - model.size());
      REQUIRE(ring.push(std::span<const std::uint64_t>(burst)) == expected);
      model.insert(model.end(), burst.begin(),
                   burst.begin() + static_cast<std::ptrdiff_t>(expected));
      next += expected;
    } else {
      const std::size_t n = ring.pop(std::span<std::uint64_t>(burst));
      REQUIRE(n == std::min(burst.size(), model.size()));
      for (std::size_t i = 0; i < n; ++i) {
        REQUIRE(burst[i] == model.front());
        model.pop_front();
      }
    }
    REQUIRE(ring.size() == model.size());
  }
}

struct Record {
  std::uint64_t sequence;
  std::uint64_t check;  // mix64(sequence): a torn or stale element cannot pass
};

TEST_CASE("two threads pass every element once, in order and whole", "[threads]") {
  constexpr std::uint64_t kElements = 300'000;
  SpscRing<Record> ring(64);
  std::thread producer([&] {
    Random random(1);
    std::vector<Record> burst;
    std::uint64_t sent = 0;
    while (sent < kElements) {
      burst.resize(1 + random.below(32));
      for (std::size_t i = 0; i < burst.size(); ++i) burst[i] = {sent + i, mix64(sent + i)};
      std::span<const Record> rest(burst);
      rest = rest.first(std::min<std::size_t>(rest.size(), kElements - sent));
      while (!rest.empty()) {
        const std::size_t n = ring.push(rest);
        rest = rest.subspan(n);
        sent += n;
        if (n == 0) std::this_thread::yield();
      }
    }
  });
  Random random(2);
  std::uint64_t received = 0;
  std::uint64_t wrong = 0;
  std::vector<Record> burst(48);
  while (received < kElements) {
    const std::size_t n = ring.pop(std::span<Record>(burst).first(1 + random.below(48)));
    for (std::size_t i = 0; i < n; ++i) {
      if (burst[i].sequence != received + i || burst[i].check != mix64(received + i)) ++wrong;
    }
    received += n;
    if (n == 0) std::this_thread::yield();
  }
  producer.join();
  CHECK(received == kElements);
  CHECK(wrong == 0);
  CHECK(ring.empty());
}

}  // namespace
}  // namespace paceline
