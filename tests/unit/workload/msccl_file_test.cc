#include "tools/workload/jobs/msccl_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "dataplane/base/numbers/random.h"

namespace paceline::workload {
namespace {

using Lines = std::vector<std::string>;

std::string msccl_path(const std::string& name) {
  return std::string(PACELINE_SOURCE_DIR) + "/tests/unit/workload/jobs/msccl/" + name;
}

Schedule good_msccl(const std::string& text) {
  const auto read = parse_msccl(text, "x");
  REQUIRE(read.errors == Lines{});
  return read.value.schedule;
}

// Runs a schedule on numbers, its transfers beginning and arriving in a random order among those
// that may happen.
class NumberRun {
 public:
  NumberRun(const Schedule& schedule, std::uint64_t seed)
      : schedule_(schedule), random_(seed), buffers_(schedule.ranks) {
    for (auto& rank : buffers_) {
      for (auto& buffer : rank) {
        buffer.resize(std::max(schedule.blocks, schedule.scratch));
        for (std::uint64_t& number : buffer) number = random_.next();
      }
    }
  }

  std::uint64_t& at(std::uint32_t rank, ScheduleBuffer buffer, std::uint32_t place) {
    return buffers_[rank][static_cast<std::size_t>(buffer)].at(place);
  }

  void run() {
    enum State : std::uint8_t { kWaiting, kBegun, kArrived };
    const auto& all = schedule_.transfers;
    std::vector<State> states(all.size(), kWaiting);
    std::vector<std::vector<std::uint64_t>> taken(all.size());
    for (std::size_t events = 2 * all.size(); events != 0; --events) {
      std::vector<std::size_t> possible;
      for (std::size_t i = 0; i < all.size(); ++i) {
        const auto waits = schedule_.waits_of(all[i]);
        const bool may_begin = std::all_of(waits.begin(), waits.end(), [&](std::uint32_t other) {
          return states[other] == kArrived;
        });
        if (states[i] == kBegun || (states[i] == kWaiting && may_begin)) possible.push_back(i);
      }
      REQUIRE_FALSE(possible.empty());
      const std::size_t i = possible[random_.next() % possible.size()];
      for (const Piece& piece : schedule_.pieces_of(all[i])) {
        if (states[i] == kWaiting) {
          taken[i].push_back(at(all[i].from, piece.source_buffer, piece.source));
        } else {
          std::uint64_t& target = at(all[i].to, piece.target_buffer, piece.target);
          const auto k = static_cast<std::size_t>(&piece - schedule_.pieces_of(all[i]).data());
          target = taken[i][k] + (all[i].sum ? target : 0);
        }
      }
      states[i] = states[i] == kWaiting ? kBegun : kArrived;
    }
  }

 private:
  const Schedule& schedule_;
  Random random_;
  std::vector<std::array<std::vector<std::uint64_t>, 3>> buffers_;
};

bool all_reduces(const Schedule& schedule, std::uint64_t seed) {
  NumberRun run(schedule, seed);
  std::vector<std::uint64_t> sums(schedule.blocks);
  for (std::uint32_t rank = 0; rank < schedule.ranks; ++rank) {
    for (std::uint32_t b = 0; b < schedule.blocks; ++b) {
      sums[b] += run.at(rank, ScheduleBuffer::result, b);
    }
  }
  run.run();
  for (std::uint32_t rank = 0; rank < schedule.ranks; ++rank) {
    for (std::uint32_t b = 0; b < schedule.blocks; ++b) {
      if (run.at(rank, ScheduleBuffer::result, b) != sums[b]) return false;
    }
  }
  return true;
}

std::size_t network_transfers(const Schedule& schedule) {
  return static_cast<std::size_t>(std::count_if(schedule.transfers.begin(),
                                                schedule.transfers.end(),
                                                [](const Transfer& t) { return t.from != t.to; }));
}

// Waits are earlier transfers that end at, or come from, the rank that sends.
void check_waits(const Schedule& schedule) {
  for (std::uint32_t i = 0; i < schedule.transfers.size(); ++i) {
    const std::uint32_t rank = schedule.transfers[i].from;
    for (const std::uint32_t other : schedule.waits_of(schedule.transfers[i])) {
      REQUIRE(other < i);
      const Transfer& t = schedule.transfers[other];
      CHECK((t.from == rank || t.to == rank));
    }
  }
}

std::string step(int s, const std::string& type, const std::string& from, const std::string& to,
                 const std::string& depends = "-1 -1", int chunks = 1) {
  const auto blank = depends.find(' ');
  return fmt::format(
      "<step s=\"{}\" type=\"{}\" srcbuf=\"{}\" srcoff=\"{}\" dstbuf=\"{}\" dstoff=\"{}\" "
      "cnt=\"{}\" depid=\"{}\" deps=\"{}\" hasdep=\"0\"/>\n",
      s, type, from.substr(0, 1), from.substr(1), to.substr(0, 1), to.substr(1), chunks,
      depends.substr(0, blank), depends.substr(blank + 1));
}
std::string block(int id, int send, int receive, int channel, const std::string& steps) {
  return fmt::format("<tb id=\"{}\" send=\"{}\" recv=\"{}\" chan=\"{}\">\n{}</tb>\n", id, send,
                     receive, channel, steps);
}
std::string gpu(int id, const std::string& chunks, const std::string& blocks) {
  return fmt::format("<gpu id=\"{}\" i_chunks=\"{}\" o_chunks=\"{}\" s_chunks=\"{}\">\n{}</gpu>\n",
                     id, chunks.substr(0, 1), chunks.substr(1, 1), chunks.substr(2, 1), blocks);
}
std::string algo(const std::string& coll, int chunks, int gpus, bool in_place,
                 const std::string& text) {
  return fmt::format(
      "<algo name=\"a\" proto=\"LL\" nchannels=\"2\" nchunksperloop=\"{}\" ngpus=\"{}\" "
      "coll=\"{}\" inplace=\"{}\">\n{}</algo>\n",
      chunks, gpus, coll, in_place ? 1 : 0, text);
}

TEST_CASE("MSCCL: the ring all-reduce of 8", "[workload]") {
  const auto read = read_msccl_file(msccl_path("custom_ring_allreduce_8.xml"));
  REQUIRE(read.errors == Lines{});
  CHECK(read.value.name == "allreduce_ring_1channelsperring");
  const Schedule& ring = read.value.schedule;
  CHECK(ring.op == CollectiveOp::all_reduce);
  CHECK(ring.ranks == 8);
  CHECK(ring.blocks == 8);
  CHECK(ring.transfers.size() == 224);  // one for each step
  CHECK(network_transfers(ring) == 112);
  CHECK(std::count_if(ring.transfers.begin(), ring.transfers.end(),
                      [](const Transfer& t) { return t.sum; }) == 56);
  std::uint64_t sent = 0;
  for (const Transfer& t : ring.transfers) {
    if (t.from == t.to) continue;
    CHECK(t.to == (t.from + 1) % 8);
    CHECK(t.pieces == 1);
    for (const Piece& piece : ring.pieces_of(t)) CHECK(piece.block == piece.source);
    sent += t.pieces;
  }
  CHECK(sent == 112);  // of S / 8: 14 S
  check_waits(ring);
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    CAPTURE(seed);
    CHECK(all_reduces(ring, seed));
  }
}

TEST_CASE("MSCCL: the all-to-all of 8", "[workload]") {
  const auto read = read_msccl_file(msccl_path("alltoall-8n-0-9kb.xml"));
  REQUIRE(read.errors == Lines{});
  CHECK(read.value.max_bytes == 9'216);
  const Schedule& all = read.value.schedule;
  CHECK(all.op == CollectiveOp::all_to_all);
  CHECK(all.blocks == 8);
  CHECK(all.transfers.size() == 56 + 8);
  CHECK(network_transfers(all) == 56);
  CHECK(all.waits.empty());
  CHECK(all.scratch == 0);
  NumberRun run(all, 1);
  std::vector<std::vector<std::uint64_t>> inputs(8);
  for (std::uint32_t rank = 0; rank < 8; ++rank) {
    for (std::uint32_t b = 0; b < 8; ++b) {
      inputs[rank].push_back(run.at(rank, ScheduleBuffer::input, b));
    }
  }
  run.run();
  for (std::uint32_t rank = 0; rank < 8; ++rank) {
    for (std::uint32_t s = 0; s < 8; ++s) {
      CHECK(run.at(rank, ScheduleBuffer::result, s) == inputs[s][rank]);
    }
  }
}

// A sum along 0, 1, 2, 3, then the result along 3, 0, 1, 2.
std::string chain(const std::string& depends) {
  return algo("allreduce", 1, 4, true,
              gpu(0, "100",
                  block(0, 1, -1, 0, step(0, "s", "i0", "i0")) +
                      block(1, 1, 3, 1, step(0, "rcs", "i0", "i0", depends))) +
                  gpu(1, "100",
                      block(0, 2, 0, 0, step(0, "rrs", "i0", "i0")) +
                          block(1, 2, 0, 1, step(0, "rcs", "i0", "i0", depends))) +
                  gpu(2, "100",
                      block(0, 3, 1, 0, step(0, "rrcs", "i0", "i0")) +
                          block(1, -1, 1, 1, step(0, "r", "i0", "i0", depends))) +
                  gpu(3, "100",
                      block(0, -1, 2, 0, step(0, "rrc", "i0", "i0")) +
                          block(1, 0, -1, 1,
                                step(0, "nop", "i0", "i0", "0 0") + step(1, "s", "i0", "i0"))));
}

TEST_CASE("MSCCL: sums and copies that are sent on", "[workload]") {
  const Schedule schedule = good_msccl(chain("0 0"));
  CHECK(network_transfers(schedule) == 6);
  CHECK(schedule.transfers.size() == 12);
  check_waits(schedule);
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    CHECK(all_reduces(schedule, seed));
  }
}

TEST_CASE("MSCCL: what a step writes waits for the send that reads it", "[workload]") {
  const auto exchange = [](const std::string& depends) {
    std::string gpus;
    for (const int rank : {0, 1}) {
      gpus += gpu(rank, "100",
                  block(0, 1 - rank, -1, 0, step(0, "s", "i0", "i0")) +
                      block(1, -1, 1 - rank, 0, step(0, "rrc", "i0", "i0", depends)));
    }
    return good_msccl(algo("allreduce", 1, 2, true, gpus));
  };
  const Schedule ordered = exchange("0 0");
  const Schedule racing = exchange("-1 -1");
  CHECK(ordered.waits.size() == 4);
  CHECK(racing.waits.size() == 2);
  std::size_t wrong = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    CHECK(all_reduces(ordered, seed));
    if (!all_reduces(racing, seed)) ++wrong;
  }
  CHECK(wrong > 0);
}

TEST_CASE("MSCCL: parts of all-gather and reduce-scatter, and scratch", "[workload]") {
  std::string gather, scatter;
  for (const int rank : {0, 1}) {
    const int other = 1 - rank;
    gather += gpu(
        rank, "242",
        block(0, other, -1, 0, step(0, "s", "i0", "o0", "-1 -1", 2)) +
            block(1, -1, other, 0,
                  step(0, "r", "i0", "s0", "-1 -1", 2) +
                      step(1, "cpy", "s0", fmt::format("o{}", 2 * other), "-1 -1", 2)) +
            block(2, -1, -1, 0, step(0, "cpy", "i0", fmt::format("o{}", 2 * rank), "-1 -1", 2)));
    scatter +=
        gpu(rank, "211",
            block(0, other, -1, 0, step(0, "s", fmt::format("i{}", other), "i0")) +
                block(1, -1, other, 1 - 1, step(0, "r", "i0", "s0") + step(1, "re", "s0", "o0")));
  }
  const Schedule gathered = good_msccl(algo("allgather", 4, 2, false, gather));
  CHECK(gathered.scratch == 2);
  CHECK(gathered.transfers.size() == 4);  // that of a rank's own part is no move
  NumberRun run(gathered, 1);
  const std::uint64_t own[] = {run.at(0, ScheduleBuffer::result, 1),
                               run.at(1, ScheduleBuffer::result, 2)};
  run.run();
  CHECK(run.at(1, ScheduleBuffer::result, 1) == own[0]);
  CHECK(run.at(0, ScheduleBuffer::result, 2) == own[1]);

  const Schedule scattered = good_msccl(algo("reduce_scatter", 2, 2, true, scatter));
  NumberRun sums(scattered, 1);
  const std::uint64_t sum[] = {
      sums.at(0, ScheduleBuffer::result, 0) + sums.at(1, ScheduleBuffer::result, 0),
      sums.at(0, ScheduleBuffer::result, 1) + sums.at(1, ScheduleBuffer::result, 1)};
  sums.run();
  CHECK(sums.at(0, ScheduleBuffer::result, 0) == sum[0]);
  CHECK(sums.at(1, ScheduleBuffer::result, 1) == sum[1]);
}

TEST_CASE("MSCCL: what is wrong in a program is named with its place", "[workload]") {
  const auto of = [](const std::string& text) { return parse_msccl(text, "x").errors; };
  const std::string idle = gpu(1, "222", "");
  const auto one = [&](const std::string& steps, const std::string& more = "") {
    return of(algo("allreduce", 2, 2, true, gpu(0, "222", block(0, 1, 1, 0, steps) + more) + idle));
  };
  CHECK(one("").empty());
  CHECK(one(step(0, "s", "i0", "i0")) ==
        Lines{"x:4:1: GPU 1 has no step on channel 0 that receives this"});
  CHECK(one(step(0, "r", "i0", "i0")) ==
        Lines{"x:4:1: GPU 1 has no step on channel 0 that sends this"});
  CHECK(one(step(1, "cpy", "i0", "o0")) ==
        Lines{"x:4:7: s = \"1\": expected an integer in [0 .. 0]"});
  CHECK(one(step(0, "cpy", "i2", "o0")) ==
        Lines{"x:4:35: srcoff = 2, 1 chunks: buffer i of this GPU has 2"});
  CHECK(one(step(0, "cpy", "i0", "s1", "-1 -1", 2)) ==
        Lines{"x:4:57: dstoff = 1, 2 chunks: buffer s of this GPU has 2"});
  CHECK(one(step(0, "cpy", "i0", "q0")) ==
        Lines{"x:4:46: dstbuf = \"q\": expected \"i\", \"o\" or \"s\""});
  CHECK(one(step(0, "mov", "i0", "o0")) ==
        Lines{"x:4:13: type = mov: expected s, r, rcs, rrc, rrs, rrcs, cpy, re or nop"});
  CHECK(one(step(0, "cpy", "i0", "s0", "3 0")) ==
        Lines{"x:4:1: waits for step 0 of tb 3, which this GPU does not have"});
  CHECK(one(step(0, "cpy", "i0", "s0", "0 -1")) ==
        Lines{"x:4:76: depid = 0 and deps = -1: expected both or neither as -1"});
  CHECK(one(step(0, "cpy", "i0", "s0", "0 1") + step(1, "nop", "i0", "i0")) ==
        Lines{"x:4:1: this step waits for itself, by way of that of line 5"});
  CHECK(one(step(0, "cpy", "s0", "i0")) == Lines{"x:4:1: reads chunk 0 of s, which holds nothing"});
  CHECK(one(step(0, "cpy", "i0", "i1")) ==
        Lines{"x:4:1: puts chunk 0 where chunk 1 belongs, which may be shorter: expected s as its "
              "place"});
  CHECK(one("", block(0, -1, -1, 0, "")) == Lines{"x:5:5: tb 0 is that of line 3, too"});
  CHECK(one("", block(1, 0, -1, 0, "")) == Lines{"x:5:12: send = 0: expected another GPU"});
  CHECK(one("", block(1, 2, -1, 0, "")) ==
        Lines{"x:5:12: send = \"2\": expected an integer in [-1 .. 1]"});
  CHECK(one("", block(1, -1, -1, 2, "")) ==
        Lines{"x:5:32: chan = \"2\": expected an integer in [0 .. 1]"});
  CHECK(one("", block(1, -1, -1, 0, step(0, "s", "i0", "i0"))) ==
        Lines{"x:6:13: s in a thread block with send = -1"});
  CHECK(one("", block(1, -1, -1, 0, step(0, "rrc", "i0", "i0"))) ==
        Lines{"x:6:13: rrc in a thread block with recv = -1"});

  const auto pair = [&](const std::string& sender, const std::string& receiver) {
    return of(algo("allreduce", 2, 2, true, gpu(0, "222", sender) + gpu(1, "222", receiver)));
  };
  CHECK(pair(block(0, 1, -1, 0, step(0, "s", "i0", "i0", "-1 -1", 2)),
             block(0, -1, 0, 0, step(0, "r", "i0", "i0"))) ==
        Lines{"x:9:1: cnt = 1: expected 2, as in the step that sends this, in line 4"});
  CHECK(pair(block(0, 1, -1, 0, step(0, "s", "i0", "i0")) +
                 block(1, 1, -1, 0, step(0, "s", "i0", "i0")),
             block(0, -1, 0, 0, step(0, "r", "i0", "i0") + step(1, "r", "i0", "i0"))) ==
        Lines{"x:7:1: another thread block uses this connection, 0 to 1 on channel 0"});
  CHECK(pair(block(0, 1, 1, 0, step(0, "rcs", "i0", "i0")),
             block(0, 0, 0, 0, step(0, "rcs", "i0", "i0"))) ==
        Lines{"x:4:1: this step waits for itself, by way of that of line 9"});

  const std::string both = gpu(0, "222", "") + idle;
  CHECK(of(algo("allreduce", 2, 2, false, both)) ==
        Lines{"x:1:87: inplace = 0: expected 1: a rank's buffer holds what it contributes"});
  CHECK(of(algo("alltoall", 2, 2, true, both)) ==
        Lines{"x:1:86: expected outofplace = 1: input and result of alltoall are two buffers"});
  CHECK(of(algo("alltoall", 4, 2, false, both)) ==
        Lines{"x:1:41: nchunksperloop = 4: expected 2, one for each GPU"});
  CHECK(of(algo("allgather", 3, 2, false, both)) ==
        Lines{"x:1:41: nchunksperloop = 3: expected a multiple of ngpus = 2"});
  CHECK(of(algo("broadcast", 2, 2, false, both)) ==
        Lines{"x:1:70: coll = broadcast: expected allreduce, allgather, reduce_scatter or "
              "alltoall"});
  CHECK(of(algo("allreduce", 2, 2, true, idle + idle)) == Lines{"x:4:6: gpu 1 is given twice"});
  CHECK(of(algo("allreduce", 2, 3, true, both)) ==
        Lines{"x:7:1: ngpus = 3: expected <gpu id=\"2\">, too"});
}

TEST_CASE("MSCCL: what is wrong in the XML is named with its place", "[workload]") {
  const auto of = [](const std::string& text) { return parse_msccl(text, "x").errors; };
  const std::string text = algo("allreduce", 1, 2, true, gpu(0, "100", "") + gpu(1, "100", ""));
  CHECK(of("<?xml version=\"1.0\"?>\n<!-- a\nnote --> " + text + "<!-- end -->\n").empty());
  // Cut off anywhere but in the blank at its end.
  for (std::size_t length = 0; length + 1 < text.size(); ++length) {
    CAPTURE(length);
    CHECK_FALSE(of(text.substr(0, length)).empty());
  }
  CHECK(of("") == Lines{"x:1:1: expected an element"});
  CHECK(of(text + text) ==
        Lines{"x:7:1: expected the end of the file: one element is the outermost"});
  CHECK(of("<algo name=\"a\"") == Lines{"x:1:15: expected a blank, > or />"});
  CHECK(of("<algo name=\"a\" name=\"b\">") == Lines{"x:1:16: name is given twice"});
  CHECK(of("<algo name=a>") == Lines{"x:1:12: expected a value in quotes"});
  CHECK(of("<algo name=\"a>\n") == Lines{"x:1:12: this value has no end"});
  CHECK(of("<algo name=\"&x;\">") == Lines{"x:1:13: expected &lt; &gt; &amp; &quot; or &apos;"});
  CHECK(of("<!-- <algo>") == Lines{"x:1:1: this comment has no end: expected -->"});
  CHECK(of("<gpu/>") == Lines{"x:1:1: <gpu>: expected <algo>"});
  CHECK(of("num_ranks 2\n") ==
        Lines{"x:1:1: this seems to be a GOAL schedule: expected an algorithm in MSCCL XML"});
  const auto changed = [&](const std::string& what, const std::string& by) {
    std::string out = text;
    const auto at = out.find(what);
    REQUIRE(at != std::string::npos);
    return of(out.replace(at, what.size(), by));
  };
  CHECK(changed("</gpu>", "text</gpu>") ==
        Lines{"x:3:1: expected <: there is no text between elements"});
  CHECK(changed("</gpu>", "</tb>") == Lines{"x:3:1: </tb>: expected </gpu>"});
  CHECK(changed("<gpu id=\"0\"", "<gpu id=\"0\" color=\"1\"") ==
        Lines{"x:2:13: unknown attribute color of <gpu>"});
  CHECK(changed("proto=\"LL\" ", "") == Lines{"x:1:1: <algo>: expected proto"});
  CHECK(changed("proto=\"LL\"", "proto=\"LL64\"") ==
        Lines{"x:1:16: proto = \"LL64\": expected \"Simple\", \"LL\" or \"LL128\""});
  CHECK(changed("name=\"a\"", std::string("name=\"a\0\"", 9)).size() == 1);
  CHECK(read_msccl_file(msccl_path("none.xml")).errors.size() == 1);
}

}  // namespace
}  // namespace paceline::workload
