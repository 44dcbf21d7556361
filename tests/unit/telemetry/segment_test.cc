// What a writer puts into a segment, a reader gets out; what is no segment, or a torn one, is told
// so and never read beyond.
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "dataplane/telemetry/segment_reader.h"
#include "dataplane/telemetry/segment_writer.h"
#include "dataplane/telemetry/sequence.h"

namespace paceline::telemetry {
namespace {

SegmentSetup two_nics() {
  SegmentSetup setup;
  setup.nics = {{"h0", 100'000'000'000, 0, 4096}, {"h1", 25'000'000'000, 1, 1024}};
  setup.records = 5;
  setup.publish_interval_ns = 5'000'000;
  setup.service_start_unix_ns = 123;
  setup.service_pid = 77;
  return setup;
}

// Memory of exactly the bytes: the sanitizers catch every access beyond.
struct Memory {
  explicit Memory(std::size_t bytes) : words((bytes + 7) / 8), size(bytes) {}
  std::span<std::byte> bytes() { return {reinterpret_cast<std::byte*>(words.data()), size}; }
  std::vector<std::uint64_t> words;
  std::size_t size;
};

TEST_CASE("a reader finds what the writer has laid out", "[segment]") {
  const SegmentSetup setup = two_nics();
  Memory memory(SegmentWriter::bytes_needed(setup));
  const SegmentWriter writer(memory.bytes(), setup);
  SegmentReader reader;
  REQUIRE(reader.open(memory.bytes()) == "");
  CHECK(reader.header().service_pid == 77);
  CHECK(reader.header().service_start_unix_ns == 123);
  CHECK(reader.header().publish_interval_ns == 5'000'000);
  REQUIRE(reader.nics().size() == 2);
  CHECK(reader.nics()[1].name == "h1");
  CHECK(reader.nics()[1].rate_bps == 25'000'000'000);
  CHECK(reader.nics()[1].worker == 1);
  CHECK(reader.nics()[1].mtu == 1024);
  REQUIRE(reader.series().size() == kNicSeries);
  for (std::size_t i = 0; i < kNicSeries; ++i) {
    CHECK(reader.series()[i].name == nic_series()[i].name);
    CHECK(reader.series()[i].unit == nic_series()[i].unit);
    CHECK(reader.series()[i].kind == nic_series()[i].kind);
    CHECK(reader.find(nic_series()[i].name) == i);
  }
  CHECK(!reader.find("no_such_series"));
}

TEST_CASE("values, messages and records come back as they were written", "[segment]") {
  const SegmentSetup setup = two_nics();
  Memory memory(SegmentWriter::bytes_needed(setup));
  const SegmentWriter writer(memory.bytes(), setup);
  SegmentReader reader;
  REQUIRE(reader.open(memory.bytes()) == "");
  NicSample sample;
  for (std::size_t nic = 0; nic < 2; ++nic) {
    REQUIRE(reader.read(nic, sample));
    CHECK(sample.body.sequence == 0);
    NicBody body;
    body.epoch = 7 + static_cast<std::uint32_t>(nic);
    body.at_ns = 1000 + nic;
    body.generation = 3;
    std::memcpy(body.algorithm.data(), "dcqcn", 5);
    body.arm = 1;
    body.guard = 9;
    NicValues values{};
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = (nic + 1) * 1'000'000 + i;
    MessagesBySize messages{};
    for (std::size_t s = 0; s < messages.size(); ++s) {
      messages[s].begun = 100 * s + nic;
      messages[s].slowdown[kSlowdownBuckets - 1] = 5 + s;
    }
    writer.write(nic, body, values, messages);
    REQUIRE(reader.read(nic, sample));
    CHECK(sample.body.sequence == 2);
    CHECK(sample.body.epoch == body.epoch);
    CHECK(sample.body.at_ns == body.at_ns);
    CHECK(sample.body.generation == 3);
    CHECK(std::string(sample.body.algorithm.data()) == "dcqcn");
    CHECK(sample.body.arm == 1);
    CHECK(sample.body.guard == 9);
    CHECK(std::equal(values.begin(), values.end(), sample.values.begin(), sample.values.end()));
    CHECK(std::memcmp(&sample.messages, &messages, sizeof(messages)) == 0);

    // Only the sizes that are named are written again.
    const MessagesBySize before = messages;
    for (MessageFigures& figures : messages) figures.completed = 50;
    writer.write(nic, body, values, messages, 0b010);
    REQUIRE(reader.read(nic, sample));
    CHECK(sample.messages[0].completed == before[0].completed);
    CHECK(sample.messages[1].completed == 50);
    CHECK(sample.messages[2].completed == before[2].completed);
  }
  QueuePairRecord record;
  REQUIRE(reader.read_record(1, 4, record));
  CHECK(record.number == 0);
  record.number = 0x4242;
  record.rate_bps = 5;
  record.limiter_ns[6] = 6;
  record.peer[15] = 9;
  writer.write_record(1, 4, record);
  CHECK(writer.number_in(1, 4) == 0x4242);
  QueuePairRecord got;
  REQUIRE(reader.read_record(1, 4, got));
  got.sequence = record.sequence;
  CHECK(std::memcmp(&got, &record, sizeof(got)) == 0);
  REQUIRE(reader.read_record(0, 4, got));
  CHECK(got.number == 0);
  REQUIRE(reader.read_record(1, 3, got));
  CHECK(got.number == 0);
}

TEST_CASE("clusters come back as they were written, as many as there are", "[segment]") {
  const SegmentSetup setup = two_nics();
  Memory memory(SegmentWriter::bytes_needed(setup));
  const SegmentWriter writer(memory.bytes(), setup);
  SegmentReader reader;
  REQUIRE(reader.open(memory.bytes()) == "");
  CHECK(reader.header().clusters == kMostClusters);
  NicSample sample;
  std::vector<MessagesBySize> messages(kMostClusters);
  std::vector<SegmentWriter::Cluster> clusters(kMostClusters);
  for (std::uint32_t c = 0; c < kMostClusters; ++c) {
    messages[c][2].begun = 1000 + c;
    messages[c][0].slowdown[3] = c;
    clusters[c] = {{c % 2, c + 1, 10 * c, 20 * c, 30 * c}, &messages[c]};
  }
  NicBody body;
  body.clusters = kMostClusters;
  body.own_cluster = 3;
  writer.write(1, body, {}, {}, kAllSizes, clusters);
  REQUIRE(reader.read(1, sample));
  CHECK(sample.body.own_cluster == 3);
  REQUIRE(sample.clusters.size() == kMostClusters);
  for (std::uint32_t c = 0; c < kMostClusters; ++c) {
    CHECK(std::memcmp(&sample.clusters[c].figures, &clusters[c].figures, sizeof(ClusterFigures)) ==
          0);
    CHECK(std::memcmp(&sample.clusters[c].messages, &messages[c], sizeof(MessagesBySize)) == 0);
  }
  // Fewer, and of one only a size.
  messages[0][1].begun = 7;
  messages[0][2].begun = 8;
  clusters[0].sizes = 0b010;
  body.clusters = 2;
  writer.write(1, body, {}, {}, kAllSizes, std::span(clusters).first(2));
  REQUIRE(reader.read(1, sample));
  REQUIRE(sample.clusters.size() == 2);
  CHECK(sample.clusters[0].messages[1].begun == 7);
  CHECK(sample.clusters[0].messages[2].begun == 1000);
  writer.write(1, {}, {}, {});
  REQUIRE(reader.read(1, sample));
  CHECK(sample.clusters.empty());
  REQUIRE(reader.read(0, sample));
  CHECK(sample.clusters.empty());
}

TEST_CASE("a segment of before there were clusters is read without them", "[segment]") {
  const SegmentSetup setup = two_nics();
  Memory memory(SegmentWriter::bytes_needed(setup));
  const SegmentWriter writer(memory.bytes(), setup);
  SegmentHeader old;
  std::memcpy(&old, memory.bytes().data(), sizeof(old));
  old.minor = 0;
  old.header_bytes = kSegmentHeaderBytes0;
  old.clusters = 0xFFFF'FFFF;  // what happens to stand there
  std::memcpy(memory.bytes().data(), &old, sizeof(old));
  SegmentReader reader;
  REQUIRE(reader.open(memory.bytes()) == "");
  CHECK(reader.header().clusters == 0);
  NicBody body;
  body.clusters = 2;
  NicSample sample;
  const MessagesBySize none{};
  writer.write(0, body, {}, {}, kAllSizes,
               std::vector<SegmentWriter::Cluster>{{{}, &none}, {{}, &none}});
  REQUIRE(reader.read(0, sample));
  CHECK(sample.clusters.empty());
}

TEST_CASE("a record of before there were source ports is read without one", "[segment]") {
  SegmentSetup setup = two_nics();
  setup.records = 1;
  Memory memory(SegmentWriter::bytes_needed(setup));
  const SegmentWriter writer(memory.bytes(), setup);
  QueuePairRecord record;
  record.number = 17;
  record.limiter_ns[6] = 99;
  record.source_port = 0xC123;
  writer.write_record(0, 0, record);
  SegmentReader reader;
  REQUIRE(reader.open(memory.bytes()) == "");
  QueuePairRecord found;
  REQUIRE(reader.read_record(0, 0, found));
  CHECK(found.source_port == 0xC123);
  SegmentHeader old;
  std::memcpy(&old, memory.bytes().data(), sizeof(old));
  old.minor = 1;
  std::memcpy(memory.bytes().data(), &old, sizeof(old));
  REQUIRE(reader.open(memory.bytes()) == "");
  REQUIRE(reader.read_record(0, 0, found));
  CHECK(found.number == 17);
  CHECK(found.limiter_ns[6] == 99);
  CHECK(found.source_port == 0);
}

TEST_CASE("what has not been written since, and where no queue pair is, need not be read",
          "[segment]") {
  const SegmentSetup setup = two_nics();
  Memory memory(SegmentWriter::bytes_needed(setup));
  const SegmentWriter writer(memory.bytes(), setup);
  SegmentReader reader;
  REQUIRE(reader.open(memory.bytes()) == "");
  NicSample sample;
  REQUIRE(reader.read(1, sample));
  CHECK(reader.at_rest_since(1, sample.body.sequence));
  writer.write(0, {}, {}, {});  // another one's
  CHECK(reader.at_rest_since(1, sample.body.sequence));
  writer.write(1, {}, {}, {});
  CHECK_FALSE(reader.at_rest_since(1, sample.body.sequence));
  REQUIRE(reader.read(1, sample));
  CHECK(reader.at_rest_since(1, sample.body.sequence));
  const SegmentHeader& h = reader.header();
  const std::uint32_t odd = sample.body.sequence + 1;
  std::memcpy(memory.bytes().data() + h.nics_at + h.nic_stride + h.body_at, &odd, sizeof(odd));
  CHECK_FALSE(reader.at_rest_since(1, sample.body.sequence));  // being written

  CHECK_FALSE(reader.has_record(0, 2));
  QueuePairRecord record;
  record.number = 17;
  writer.write_record(0, 2, record);
  CHECK(reader.has_record(0, 2));
  CHECK_FALSE(reader.has_record(1, 2));
  writer.write_record(0, 2, {});
  CHECK_FALSE(reader.has_record(0, 2));
}

TEST_CASE("a writer that died in the middle is told from one that rests", "[segment]") {
  const SegmentSetup setup = two_nics();
  Memory memory(SegmentWriter::bytes_needed(setup));
  const SegmentWriter writer(memory.bytes(), setup);
  SegmentReader reader;
  REQUIRE(reader.open(memory.bytes()) == "");
  const SegmentHeader& h = reader.header();
  std::byte* const body = memory.bytes().data() + h.nics_at + h.nic_stride + h.body_at;
  const std::uint32_t odd = 5;
  std::memcpy(body, &odd, sizeof(odd));
  NicSample sample;
  CHECK(reader.read(0, sample));
  CHECK_FALSE(reader.read(1, sample));
  // A writer that takes the segment over can continue.
  writer.write(1, {}, {}, {});
  REQUIRE(reader.read(1, sample));
  CHECK(sample.body.sequence == 6);
}

TEST_CASE("a reader never sees half of a writing", "[segment]") {
  const SegmentSetup setup = two_nics();
  Memory memory(SegmentWriter::bytes_needed(setup));
  const SegmentWriter writer(memory.bytes(), setup);
  SegmentReader reader;
  REQUIRE(reader.open(memory.bytes()) == "");
  std::atomic<bool> stop{false};
  std::thread thread([&] {
    for (std::uint64_t n = 1; !stop.load(std::memory_order_relaxed); ++n) {
      NicBody body;
      body.at_ns = n;
      NicValues values;
      values.fill(n);
      MessagesBySize messages{};
      messages[2].slowdown.fill(n);
      writer.write(0, body, values, messages);
      QueuePairRecord record;
      record.number = 1;
      record.at_ns = record.completions = n;
      record.limiter_ns.fill(n);
      writer.write_record(0, 0, record);
      std::this_thread::yield();
    }
  });
  NicSample sample;
  QueuePairRecord record;
  int whole = 0;
  std::uint64_t last = 0;
  for (int i = 0; i < 20'000; ++i) {
    if (reader.read(0, sample)) {
      const std::uint64_t n = sample.body.at_ns;
      const bool same = sample.values.front() == n && sample.values.back() == n &&
                        sample.messages[2].slowdown.front() == n &&
                        sample.messages[2].slowdown.back() == n;
      if (!same || n < last) {
        FAIL_CHECK("a torn body at " << n << " after " << last);
        break;
      }
      last = n;
      ++whole;
    }
    if (reader.read_record(0, 0, record) &&
        (record.at_ns != record.completions || record.at_ns != record.limiter_ns[6])) {
      FAIL_CHECK("a torn record at " << record.at_ns);
      break;
    }
  }
  stop = true;
  thread.join();
  CHECK(whole > 0);
}

TEST_CASE("what is no segment is refused", "[segment]") {
  const SegmentSetup setup = two_nics();
  Memory good(SegmentWriter::bytes_needed(setup));
  const SegmentWriter writer(good.bytes(), setup);
  SegmentReader reader;
  SegmentHeader header;
  std::memcpy(static_cast<void*>(&header), good.words.data(), sizeof(header));
  const auto refused = [&](auto change) {
    Memory bad = good;
    SegmentHeader h = header;
    change(h);
    std::memcpy(bad.words.data(), &h, sizeof(h));
    const std::string why = reader.open(bad.bytes());
    INFO(why);
    return !why.empty();
  };
  CHECK_FALSE(refused([](SegmentHeader&) {}));
  CHECK_FALSE(refused([](SegmentHeader& h) { h.minor = 9; }));
  CHECK(refused([](SegmentHeader& h) { h.magic ^= 1; }));
  CHECK(refused([](SegmentHeader& h) { ++h.major; }));
  CHECK(refused([](SegmentHeader& h) { h.header_bytes = 8; }));
  CHECK(refused([](SegmentHeader& h) { ++h.total_bytes; }));
  CHECK(refused([](SegmentHeader& h) { h.series = 0xFFFF'FFFF; }));
  CHECK(refused([](SegmentHeader& h) { h.series_at = 0xFFFF'FFF8; }));
  CHECK(refused([](SegmentHeader& h) { h.series_stride = 8; }));
  CHECK(refused([](SegmentHeader& h) { h.nics = 3; }));
  CHECK(refused([](SegmentHeader& h) { h.nics_at += 4; }));
  CHECK(refused([](SegmentHeader& h) { h.nics_at += 64; }));
  CHECK(refused([](SegmentHeader& h) { h.nic_stride = ~std::uint64_t{7}; }));
  CHECK(refused([](SegmentHeader& h) { h.nic_stride = 8; }));
  CHECK(
      refused([](SegmentHeader& h) { h.body_at = static_cast<std::uint32_t>(h.nic_stride - 8); }));
  CHECK(refused([](SegmentHeader& h) { h.values_at = 0xFFFF'FFF8; }));
  CHECK(refused(
      [](SegmentHeader& h) { h.messages_at = static_cast<std::uint32_t>(h.nic_stride - 64); }));
  CHECK(refused([](SegmentHeader& h) { ++h.records; }));
  CHECK(refused([](SegmentHeader& h) { ++h.clusters; }));
  CHECK(refused([](SegmentHeader& h) { h.cluster_stride += 4; }));
  CHECK(refused([](SegmentHeader& h) { h.record_stride = 64; }));
  CHECK(refused([](SegmentHeader& h) { h.records = 1U << 30U; }));
  CHECK(reader.open({}) != "");
  CHECK(reader.open(good.bytes().first(sizeof(SegmentHeader) - 8)) != "");
  CHECK(reader.open(good.bytes().first(good.size - 8)) != "");
  CHECK(reader.open(good.bytes().subspan(4)) != "");
  CHECK(reader.nics().empty());
}

// Under AddressSanitizer this is what finds a read beyond the memory.
TEST_CASE("any header is refused or served without a step outside", "[segment]") {
  const SegmentSetup setup = two_nics();
  Memory good(SegmentWriter::bytes_needed(setup));
  const SegmentWriter writer(good.bytes(), setup);
  const std::uint64_t seed = 20;
  INFO("seed " << seed);
  Random rng(seed);
  SegmentReader reader;
  NicSample sample;
  QueuePairRecord record;
  int served = 0;
  for (int round = 0; round < 3000; ++round) {
    Memory bad = good;
    const std::uint64_t changes = 1 + rng.below(3);
    for (std::uint64_t i = 0; i < changes; ++i) {
      std::byte* const at = bad.bytes().data() + 4 * rng.below(sizeof(SegmentHeader) / 4);
      std::uint32_t word = 0;
      std::memcpy(&word, at, 4);
      const std::uint64_t kind = rng.below(3);
      word = kind == 0   ? static_cast<std::uint32_t>(rng.next())
             : kind == 1 ? word + 8 * static_cast<std::uint32_t>(rng.below(64))
                         : word - 8 * static_cast<std::uint32_t>(rng.below(64));
      std::memcpy(at, &word, 4);
    }
    if (!reader.open(bad.bytes()).empty()) continue;
    ++served;
    for (std::size_t n = 0; n < reader.nics().size(); ++n) {
      static_cast<void>(reader.read(n, sample));
      for (std::size_t r = 0; r < reader.records(); ++r) {
        static_cast<void>(reader.read_record(n, r, record));
      }
    }
  }
  CHECK(served > 10);
}

}  // namespace
}  // namespace paceline::telemetry
