// Lists of segments, and inline data: gathered and scattered byte by byte.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>

#include "tests/unit/transport/lab.h"

namespace paceline::transport::test {
namespace {

constexpr std::uint32_t kSegmentMtu = 256;

// Up to 16 segments that do not overlap, within [begin, end) of a side's memory.
std::vector<Segment> draw(Random& random, const Lab::Side& side, std::uint64_t begin,
                          std::uint64_t total) {
  std::vector<Segment> segments;
  std::uint64_t at = begin;
  while (segments.size() < kMaxSegments - 1 && total != 0) {
    const std::uint64_t length = std::min<std::uint64_t>(total, random.below(3 * kSegmentMtu));
    at += random.below(9);
    segments.push_back({Lab::kBase + at, length, side.key});  // of no bytes, now and then
    at += length;
    total -= length;
  }
  segments.push_back({Lab::kBase + at + 1, total, side.key});
  return segments;
}

std::vector<std::byte> content(const Lab::Side& side, const std::vector<Segment>& segments) {
  std::vector<std::byte> bytes;
  for (const Segment& s : segments) {
    const auto begin = side.memory.begin() + static_cast<std::ptrdiff_t>(s.address - Lab::kBase);
    bytes.insert(bytes.end(), begin, begin + static_cast<std::ptrdiff_t>(s.length));
  }
  return bytes;
}

struct Lists {
  explicit Lists(std::uint64_t seed, Impairments impairments = {})
      : lab(options_of(seed, impairments)), receives(256, ReceiveSharing::owned, kMaxSegments) {
    QpConfig b = lab.qp_config(1);
    b.receive_queue = &receives;
    pair = lab.connect(lab.qp_config(0), b, 0xFF'FFC0, 0);
  }
  static LabOptions options_of(std::uint64_t seed, Impairments impairments) {
    LabOptions options;
    options.seed = seed;
    options.impairments = impairments;
    options.engine.payload_mtu = kSegmentMtu;
    options.qp.retransmit_timeout = picos_from_micros(100);
    options.qp.retry_count = 100;
    options.qp.max_send_segments = kMaxSegments;
    options.qp.max_inline = 220;
    return options;
  }
  Lab lab;
  ReceiveQueue receives;
  Lab::Pair pair;
};

TEST_CASE("SEND, WRITE and READ over lists of segments", "[transport][segments]") {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    Lists lists(seed, seed % 2 == 0 ? Impairments{.drop = 0.02, .duplicate = 0.02, .reorder = 0.02}
                                    : Impairments{});
    Lab& lab = lists.lab;
    Lab::fill(std::span(lab.a().memory).first(0x20'0000), seed);
    Lab::fill(std::span(lab.b().memory).subspan(0x20'0000), seed + 100);
    Random random(seed, 8);
    constexpr std::uint64_t kRoom = 0x8000;
    constexpr std::uint64_t kCount = 60;
    struct Job {
      WorkOpcode opcode;
      std::vector<Segment> near;  // at a
      std::vector<Segment> far;   // at b: of the receive request
      std::uint64_t remote;       // at b: WRITE and READ
      std::uint64_t length;
    };
    std::vector<Job> jobs;
    for (std::uint64_t id = 0; id < kCount; ++id) {
      Job job;
      constexpr WorkOpcode kOpcodes[] = {WorkOpcode::send, WorkOpcode::write, WorkOpcode::read};
      job.opcode = kOpcodes[random.below(3)];
      job.length = random.below(4) == 0 ? random.below(4) : random.below(12 * kSegmentMtu);
      const bool read = job.opcode == WorkOpcode::read;
      // READs go from b's upper half to a's upper half, all else from lower half to lower half.
      const std::uint64_t place = id * kRoom + (read ? 0x20'0000 : 0);
      job.near = draw(random, lab.a(), place, job.length);
      job.remote = place;
      if (job.opcode == WorkOpcode::send) {
        job.far = draw(random, lab.b(), place, job.length);
        ReceiveRequest receive;
        receive.wr_id = id;
        receive.segments = job.far.data();
        receive.segment_count = static_cast<std::uint8_t>(job.far.size());
        REQUIRE(lab.b().engine.post_receive(lab.now(), lists.pair.b, receive));
      }
      WorkRequest request = lab.request(job.opcode, id, 0, job.remote, 0);
      request.segments = job.near.data();
      request.segment_count = static_cast<std::uint8_t>(job.near.size());
      REQUIRE(lab.post(0, lists.pair.a, request) == PostResult::ok);
      jobs.push_back(std::move(job));
    }
    lab.run(picos_from_micros(1'000'000));
    CAPTURE(seed);
    const auto sent = lab.a().sent();
    REQUIRE(sent.size() == kCount);
    for (std::uint64_t id = 0; id < kCount; ++id) {
      const Job& job = jobs[id];
      CHECK(sent[id].status == CompletionStatus::success);
      CHECK(sent[id].bytes == job.length);
      const auto near = content(lab.a(), job.near);
      const auto far = job.opcode == WorkOpcode::send
                           ? content(lab.b(), job.far)
                           : content(lab.b(), {{Lab::kBase + job.remote, job.length, 0}});
      CHECK(near == far);
    }
    CHECK(lab.leftovers().empty());
  }
}

TEST_CASE("inline data is taken when it is posted", "[transport][segments]") {
  Lists lists(1);
  Lab& lab = lists.lab;
  std::vector<std::byte> buffer(220);
  for (std::uint64_t id = 0; id < 20; ++id) {
    std::fill(buffer.begin(), buffer.end(), static_cast<std::byte>(id + 1));
    WorkRequest request =
        lab.request(id % 2 == 0 ? WorkOpcode::write : WorkOpcode::send, id, 0, id * 256, 200 + id);
    if (id % 2 != 0) {
      REQUIRE(lab.b().engine.post_receive(lab.now(), lists.pair.b,
                                          {id, Lab::kBase + id * 256, 256, lab.b().key}));
    }
    request.local_key = 0;  // no region is asked
    request.inline_bytes = buffer.data();
    REQUIRE(lab.post(0, lists.pair.a, request) == PostResult::ok);
  }
  std::fill(buffer.begin(), buffer.end(), std::byte{0xEE});  // the buffer is ours again
  CHECK(lab.run(picos_from_micros(1000)));
  CHECK(lab.a().sent().size() == 20);
  for (std::uint64_t id = 0; id < 20; ++id) {
    const std::byte* begin = lab.b().memory.data() + id * 256;
    CHECK(std::all_of(begin, begin + 200 + id,
                      [id](std::byte b) { return b == static_cast<std::byte>(id + 1); }));
    CHECK(begin[200 + id] == std::byte{0});
  }
  CHECK(lab.leftovers().empty());
}

TEST_CASE("lists: too long, without right, of an atomic; inline: too long, of a READ",
          "[transport][segments]") {
  Lists lists(1);
  Lab& lab = lists.lab;
  const Segment good{Lab::kBase, 8, lab.a().key};
  std::vector<Segment> segments(kMaxSegments + 1, good);
  WorkRequest request = lab.request(WorkOpcode::write, 1, 0, 0, 0);
  request.segments = segments.data();
  request.segment_count = kMaxSegments + 1;
  CHECK(lab.post(0, lists.pair.a, request) == PostResult::too_many_segments);
  request.segment_count = 3;
  segments[2].key ^= 0x5500;
  CHECK(lab.post(0, lists.pair.a, request) == PostResult::bad_key);
  segments[2] = good;
  request.opcode = WorkOpcode::fetch_add;
  CHECK(lab.post(0, lists.pair.a, request) == PostResult::bad_length);
  std::vector<std::byte> bytes(300);
  request = lab.request(WorkOpcode::write, 1, 0, 0, 221);
  request.inline_bytes = bytes.data();
  CHECK(lab.post(0, lists.pair.a, request) == PostResult::bad_length);
  request.length = 100;
  request.opcode = WorkOpcode::read;
  CHECK(lab.post(0, lists.pair.a, request) == PostResult::bad_opcode);
  // A receive request with more segments than the queue was made for.
  ReceiveRequest receive;
  receive.segments = segments.data();
  receive.segment_count = kMaxSegments + 1;
  CHECK(!lab.b().engine.post_receive(lab.now(), lists.pair.b, receive));
}

}  // namespace
}  // namespace paceline::transport::test
