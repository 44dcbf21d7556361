#include "tests/interop/peer/pingpong.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "tests/interop/peer/side_channel.h"

namespace paceline::interop {

namespace {

using Steady = std::chrono::steady_clock;
constexpr auto kPatience = std::chrono::seconds(10);
constexpr unsigned kQueuePair = 0x7070;  // the backend's name for it
constexpr unsigned kReceives = 64;
constexpr std::uint32_t kFirstPsn = 0xFF'FF00;

void require(bool good, const std::string& what) {
  if (!good) throw std::runtime_error("pingpong: " + what);
}

// As the program of rdma-core does it: the one that connects speaks first, and says "done" when it
// has heard the other.
SideChannel exchange(const PingpongOptions& options, const Remote& self, Backend& backend) {
  const auto turn = [&backend](int fd) { backend.turn(fd); };
  if (!options.connect.empty()) {
    SideChannel channel = SideChannel::to(options.connect, options.port, turn);
    channel.write(pingpong_words(self));
    backend.connect(kQueuePair, remote_from_pingpong(channel.read(kPingpongBytes)));
    channel.write({"done", 5});
    return channel;
  }
  SideChannel channel = SideChannel::from(options.port, turn);
  backend.connect(kQueuePair, remote_from_pingpong(channel.read(kPingpongBytes)));
  channel.write(pingpong_words(self));
  channel.read(5);
  return channel;
}

class Rally {
 public:
  Rally(Backend& backend, const PingpongOptions& options, const Registered& out,
        const Registered& in)
      : backend_(backend), options_(options), out_(out), in_(in) {
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(kReceives, options.iterations); ++i) {
      receive();
    }
  }

  void play(bool serve) {
    if (serve) send();
    auto end = Steady::now() + kPatience;
    while (sent_ < options_.iterations || received_ < options_.iterations) {
      if (take()) {
        end = Steady::now() + kPatience;
      } else {
        require(Steady::now() < end, "silence after " + std::to_string(received_) + " messages");
        backend_.turn(-1);
      }
    }
  }

 private:
  Work whole(const Registered& region) const {
    Work work;
    work.address = region.address;
    work.length = options_.bytes;
    work.key = region.local_key;
    return work;
  }
  void receive() {
    backend_.receive(kQueuePair, whole(in_));
    ++posted_;
  }
  void send() {
    backend_.post(kQueuePair, whole(out_));
    ++begun_;
  }

  // True when something was completed.
  bool take() {
    bool any = false;
    for (const Done& done : backend_.completed(kQueuePair, false)) {
      require(done.status == "success", done.status);
      ++sent_;
      any = true;
    }
    for (const Done& done : backend_.completed(kQueuePair, true)) {
      require(done.status == "success", done.status);
      require(done.bytes == options_.bytes, "a message of another length");
      const auto wrong = std::find_if(in_.memory, in_.memory + done.bytes, [this](std::byte b) {
        return b != std::byte{options_.fill};
      });
      require(wrong == in_.memory + done.bytes, "wrong bytes");
      std::fill_n(in_.memory, done.bytes, std::byte{0});
      ++received_;
      any = true;
      if (posted_ < options_.iterations) receive();
    }
    // The next one, when this one has gone and its answer, or the next question, is here.
    if (any && begun_ < options_.iterations && sent_ == begun_ && received_ > answered()) send();
    return any;
  }
  // Messages of the other end that what was sent so far has answered: the one who serves is ahead.
  std::uint64_t answered() const { return begun_ - (serves() ? 1 : 0); }
  bool serves() const { return !options_.connect.empty(); }

  Backend& backend_;
  const PingpongOptions& options_;
  Registered out_;
  Registered in_;
  std::uint64_t begun_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t posted_ = 0;
  std::uint64_t received_ = 0;
};

}  // namespace

std::uint64_t pingpong(Backend& backend, const PingpongOptions& options) {
  QueuePairSpec spec;
  spec.mtu = options.mtu;
  spec.first_psn = kFirstPsn;
  spec.depth = 1;
  const std::uint32_t number = backend.make_qp(kQueuePair, spec);
  const Registered out = backend.add_region(options.bytes, false);
  const Registered in = backend.add_region(options.bytes, false);
  std::fill_n(out.memory, options.bytes, std::byte{options.fill});
  try {
    Rally rally(backend, options, out, in);
    const SideChannel channel = exchange(options, {backend.address(), number, kFirstPsn}, backend);
    rally.play(!options.connect.empty());
  } catch (...) {
    backend.destroy(kQueuePair);
    throw;
  }
  // The last acknowledgement of the other end may still ask for ours.
  const auto end = Steady::now() + std::chrono::milliseconds(200);
  while (Steady::now() < end) backend.turn(-1);
  backend.destroy(kQueuePair);
  return options.bytes * options.iterations;
}

}  // namespace paceline::interop
