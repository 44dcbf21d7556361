#include "control/tuner/online/observation/signature.h"

#include <catch2/catch.hpp>

#include "control/tuner/online/observation/change_point.h"
#include "dataplane/base/numbers/random.h"

namespace paceline::tuner::online {
namespace {

using Catch::Matchers::Contains;

// 10 ms of a 100 Gb/s NIC: `share` of the line, messages drawn by the shares of the sizes.
Window traffic(Random& random, double share, double small, double medium, std::uint32_t senders) {
  Window w;
  w.end_ns = 10'000'000;
  w.line_bps = 100'000'000'000;
  w.tx_bytes = w.rx_bytes = static_cast<std::uint64_t>(share * 125e6);
  w.rx_packets = 1000;
  w.senders = senders;
  for (int i = 0; i < 20; ++i) {
    const double u = random.uniform();
    const std::size_t size = u < small ? 0 : u < small + medium ? 1 : 2;
    w.messages[size].begun += 1;
    w.messages[size].begun_bytes += w.tx_bytes / 20;
  }
  return w;
}

TEST_CASE("signature: load, degree, sizes and where marks come from", "[tuner_online]") {
  Random random(1);
  SignatureBuilder builder;
  for (int i = 0; i < 100; ++i) {
    builder.add(traffic(random, 0.73, 0.5, 0.5, i < 90 ? 3 : 20));
  }
  const Signature s = builder.signature();
  CHECK(s.load == 7);
  CHECK(degree_senders(s.degree) == 32);
  CHECK(s.bytes[0] == Approx(0.5).margin(0.05));
  CHECK(s.bytes[2] == 0);
  CHECK_FALSE(s.core_marks);
  CHECK(s.key() == "l7-d6-s220-c0");
  CHECK_THAT(s.words(), Contains("load 70 to 80 %") && Contains("32 senders"));
}

TEST_CASE("signature: bins of the degree", "[tuner_online]") {
  const std::uint32_t first[] = {0, 1, 2, 3, 5, 9, 17, 33};
  for (std::uint32_t bin = 0; bin < 8; ++bin) {
    CHECK(degree_bin(first[bin]) == bin);
    CHECK(degree_bin(degree_senders(bin)) == bin);
  }
  CHECK(degree_bin(~0U) == kDegrees - 1);
}

TEST_CASE("signature: marks while the own link is quiet come from the core", "[tuner_online]") {
  Random random(2);
  for (const double share : {0.3, 0.9}) {
    SignatureBuilder builder;
    Window w = traffic(random, share, 1, 0, 1);
    w.ce_packets = 5;
    builder.add(w);
    CHECK(builder.signature().core_marks == (share < kQuietLink));
  }
}

TEST_CASE("signature: distance is 0 to itself, and 1 to another world", "[tuner_online]") {
  Signature a;
  a.load = 8;
  a.degree = 5;
  a.bytes = {0, 0, 1};
  CHECK(distance(a, a) == 0);
  Signature near = a;
  near.load = 7;
  CHECK(distance(a, near) < 0.15);
  Signature far = a;
  far.bytes = {1, 0, 0};
  far.degree = 1;
  CHECK(distance(a, far) > 1);
  CHECK(distance(a, far) == distance(far, a));
  far = a;
  a.link_gbps = 100;
  CHECK(distance(a, far) == 0);  // it is unknown of which link
  far.link_gbps = 25;
  CHECK(distance(a, far) == Approx(2.0 / 3));
}

ChangeDetector taught(Random& random, double load, double small) {
  SignatureBuilder reference;
  for (int i = 0; i < 100; ++i) reference.add(traffic(random, load, small, 0.2, 4));
  ChangeDetector detector;
  detector.learn(reference);
  return detector;
}

TEST_CASE("change point: the same workload is none, over many seeds", "[tuner_online]") {
  std::size_t found = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    ChangeDetector detector = taught(random, 0.5, 0.6);
    for (int i = 0; i < 600 && detector.learned(); ++i) {
      if (detector.add(traffic(random, 0.5, 0.6, 0.2, 4))) ++found;
    }
  }
  CHECK(found == 0);
}

TEST_CASE("change point: another mix, held for three spans", "[tuner_online]") {
  Random random(3);
  ChangeDetector detector = taught(random, 0.5, 0.6);
  const auto windows_until_found = [&](double share, double small, std::uint32_t senders) {
    for (int i = 1; i <= 200; ++i) {
      if (const auto words = detector.add(traffic(random, share, small, 0.2, senders))) {
        INFO(*words);
        CHECK_FALSE(detector.learned());
        return i;
      }
    }
    return 0;
  };
  CHECK(windows_until_found(0.5, 0.3, 4) == 30);  // three spans of ten
  detector = taught(random, 0.5, 0.6);
  CHECK(windows_until_found(0.5, 0.6, 16) == 30);
  detector = taught(random, 0.3, 0.6);
  CHECK(windows_until_found(0.9, 0.6, 4) == 30);
  detector = taught(random, 0.5, 0.6);
  CHECK(windows_until_found(0.6, 0.6, 4) == 0);  // a fifth more load: the same
}

TEST_CASE("change point: two spans are a burst, not a change", "[tuner_online]") {
  Random random(4);
  ChangeDetector detector = taught(random, 0.5, 0.6);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 20; ++i) CHECK_FALSE(detector.add(traffic(random, 0.5, 0.1, 0.2, 4)));
    for (int i = 0; i < 10; ++i) CHECK_FALSE(detector.add(traffic(random, 0.5, 0.6, 0.2, 4)));
  }
}

}  // namespace
}  // namespace paceline::tuner::online
