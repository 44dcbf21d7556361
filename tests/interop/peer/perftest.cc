#include "tests/interop/peer/perftest.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include "tests/interop/peer/side_channel.h"

namespace paceline::interop {

namespace {

using Steady = std::chrono::steady_clock;
constexpr auto kPatience = std::chrono::seconds(20);
constexpr unsigned kQueuePair = 0x7071;  // the backend's name for it
constexpr std::uint32_t kFirstPsn = 0xFF'FF00;
constexpr unsigned kDepth = 32;
constexpr unsigned kReads = 4;
constexpr std::size_t kKeyBytes = 108;
constexpr std::size_t kFigures = 5 * 8;  // size, iterations, peak, average, rate

void require(bool good, const std::string& what) {
  if (!good) throw std::runtime_error("perftest: " + what);
}

std::string padded(std::string text, std::size_t bytes) {
  text.resize(bytes, '\0');
  return text;
}

std::string big_endian(std::uint64_t value, unsigned bytes) {
  std::string text;
  for (unsigned i = bytes; i-- > 0;) text += static_cast<char>(value >> (8 * i));
  return text;
}

// LID, READs outstanding, queue pair, PSN, key, address, GID, number of a shared receive queue.
std::string keys_of(const Remote& end, const Registered& memory) {
  char head[64];
  const int n = std::snprintf(head, sizeof head, "%04x:%04x:%06x:%06x:%08x:%016llx:", 0U, kReads,
                              end.number, end.first_psn, memory.remote_key,
                              static_cast<unsigned long long>(memory.address));
  std::string text(head, static_cast<std::size_t>(n));
  const std::string words = pingpong_words(end);  // its last 32 digits are the GID
  for (std::size_t i = 0; i < 16; ++i) text += words.substr(19 + 2 * i, 2) + ':';
  return padded(text + "00000000:", kKeyBytes);
}

struct Theirs {
  Remote end;
  std::uint64_t address = 0;
  std::uint32_t key = 0;
};

Theirs parsed(const std::string& keys) {
  require(keys.size() == kKeyBytes && keys[4] == ':' && keys[9] == ':' && keys[49] == ':',
          "these are no keys");
  std::string gid;
  for (std::size_t i = 0; i < 16; ++i) gid += keys.substr(50 + 3 * i, 2);
  Theirs theirs;
  theirs.end = remote_from_pingpong("0000:" + keys.substr(10, 13) + ":" + gid + '\0');
  theirs.key = static_cast<std::uint32_t>(std::stoul(keys.substr(24, 8), nullptr, 16));
  theirs.address = std::stoull(keys.substr(33, 16), nullptr, 16);
  return theirs;
}

// At every step the client speaks first.
class Steps {
 public:
  Steps(SideChannel& channel, bool client) : channel_(channel), client_(client) {}
  std::string swap(const std::string& ours) {
    if (client_) channel_.write(ours);
    std::string theirs = channel_.read(ours.size());
    if (!client_) channel_.write(ours);
    return theirs;
  }

 private:
  SideChannel& channel_;
  bool client_;
};

void move(Backend& backend, const PerftestOptions& options, const Registered& memory,
          const Theirs& theirs) {
  std::uint64_t begun = 0;
  std::uint64_t done = 0;
  auto end = Steady::now() + kPatience;
  while (done < options.iterations) {
    for (; begun < options.iterations && begun - done < kDepth; ++begun) {
      Work work;
      work.id = begun;
      work.operation = options.read ? Operation::read : Operation::write;
      work.address = memory.address;
      work.length = options.bytes;
      work.key = memory.local_key;
      work.remote_address = theirs.address;
      work.remote_key = theirs.key;
      backend.post(kQueuePair, work);
    }
    for (const Done& one : backend.completed(kQueuePair, false)) {
      require(one.status == "success", one.status);
      ++done;
      end = Steady::now() + kPatience;
    }
    require(Steady::now() < end, "silence after " + std::to_string(done));
    backend.turn(-1);
  }
}

std::uint64_t run(Backend& backend, const PerftestOptions& options, const Remote& self) {
  const bool client = !options.connect.empty();
  const auto turn = [&backend](int fd) { backend.turn(fd); };
  SideChannel channel = client ? SideChannel::to(options.connect, options.port, turn)
                               : SideChannel::from(options.port, turn);
  Steps steps(channel, client);
  // Twice as much as is moved: the program keeps two halves.
  const Registered memory = backend.add_region(2 * options.bytes, true);
  steps.swap(padded("6.06", 16));
  steps.swap(big_endian(4096, 4));
  steps.swap(big_endian(64, 4));
  const int mtu_code = std::countr_zero(options.mtu) - 7;  // 256 bytes are 1 (vol. 1, 9.5.2)
  steps.swap(padded(std::to_string(mtu_code), 2));
  const std::string keys = keys_of(self, memory);
  const Theirs theirs = parsed(steps.swap(keys));
  backend.connect(kQueuePair, theirs.end);
  steps.swap(keys);
  if (client) move(backend, options, memory, theirs);
  steps.swap(keys);
  steps.swap(std::string(kFigures, '\0'));
  steps.swap(keys);
  require(steps.swap(padded("done", 5)) == padded("done", 5), "no good end");
  return client ? options.bytes * options.iterations : 0;
}

}  // namespace

std::uint64_t perftest(Backend& backend, const PerftestOptions& options) {
  QueuePairSpec spec;
  spec.mtu = options.mtu;
  spec.first_psn = kFirstPsn;
  spec.depth = kReads;
  const std::uint32_t number = backend.make_qp(kQueuePair, spec);
  try {
    const std::uint64_t moved = run(backend, options, {backend.address(), number, kFirstPsn});
    backend.destroy(kQueuePair);
    return moved;
  } catch (...) {
    backend.destroy(kQueuePair);
    throw;
  }
}

}  // namespace paceline::interop
