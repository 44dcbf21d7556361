#include "dataplane/driver/ports/frame_replay.h"

#include <algorithm>
#include <cstring>

#include "dataplane/port/packet_pool.h"

namespace paceline {

namespace {

// The time between two tries if a port takes nothing, or has no free packet.
constexpr Picos kRetry = picos_from_micros(2);

}  // namespace

FrameReplay::FrameReplay(Port& port, WallClock& clock, const FrameReplayOptions& options)
    : port_(port), clock_(clock), options_(options) {}

FrameReplay::~FrameReplay() {
  for (std::size_t i = 0; i < count_; ++i) port_.packets().free(waiting_[i]);
}

// Discards received frames, which would fill the device's rings.
void FrameReplay::receive() {
  std::array<Packet*, kBurst> burst;
  for (std::size_t n = port_.rx(burst); n != 0; n = port_.rx(burst)) {
    report_.received += n;
    for (std::size_t i = 0; i < n; ++i) port_.packets().free(burst[i]);
  }
}

// Hands over all waiting frames. False: given up.
bool FrameReplay::flush() {
  std::size_t sent = 0;
  Picos progress = clock_.now();
  while (sent < count_) {
    std::uint64_t bytes[kBurst];
    for (std::size_t i = sent; i < count_; ++i) {
      bytes[i] = std::uint64_t{waiting_[i]->header_bytes} + waiting_[i]->payload_bytes;
    }
    const Picos now = clock_.now();
    const std::size_t n = port_.tx(now, kDefaultDataClass,
                                   std::span<Packet* const>(waiting_).subspan(sent, count_ - sent));
    for (std::size_t i = sent; i < sent + n; ++i) report_.bytes += bytes[i];
    report_.sent += n;
    sent += n;
    if (sent == count_) break;
    if (n != 0) progress = now;
    receive();
    if (stopped()) break;
    if (now - progress > options_.patience) {
      error_ = "the port takes no frames: is a peer at the other end?";
      break;
    }
    clock_.wait(now + kRetry);
  }
  std::copy(waiting_.begin() + static_cast<std::ptrdiff_t>(sent),
            waiting_.begin() + static_cast<std::ptrdiff_t>(count_), waiting_.begin());
  count_ -= sent;
  return count_ == 0;
}

// As plain bytes: a packet without a known transport header (port.h), so that nothing is computed
// or added.
bool FrameReplay::take(const FrameRead& frame) {
  const std::string which = "frame " + std::to_string(frame.number);
  const std::size_t size = frame.bytes.size();
  if (frame.original_bytes > size) {
    error_ = which + " was cut short when captured: " + std::to_string(size) + " of " +
             std::to_string(frame.original_bytes) + " bytes";
    return false;
  }
  const std::size_t most = kMaxHeaderBytes + port_.packets().payload_room();
  if (size < 14 || size > most) {
    error_ = which + " has " + std::to_string(size) + " bytes; allowed on this port are 14 to " +
             std::to_string(most);
    return false;
  }
  if (count_ == kBurst && !flush()) return false;
  Packet* packet = port_.packets().alloc();
  for (const Picos begin = clock_.now(); packet == nullptr; packet = port_.packets().alloc()) {
    if (!flush()) return false;
    receive();
    port_.tx(clock_.now(), kDefaultDataClass, {});  // a ring brings its packets home
    if (stopped()) return false;
    if (clock_.now() - begin > options_.patience) {
      error_ = "the port has no packet free: it sends nothing";
      return false;
    }
    clock_.wait(clock_.now() + kRetry);
  }
  const std::size_t head = std::min(size, kMaxHeaderBytes);
  std::memcpy(packet->header.data(), frame.bytes.data(), head);
  packet->header_bytes = static_cast<std::uint16_t>(head);
  packet->payload_bytes = static_cast<std::uint16_t>(size - head);
  packet->payload_kind = size == head ? PayloadKind::none : PayloadKind::owned;
  if (size != head) std::memcpy(packet->payload, frame.bytes.data() + head, size - head);
  packet->bth_offset = 0;
  packet->icrc = 0;
  packet->ecn = Ecn::not_ect;
  packet->traffic_class = kDefaultDataClass;
  waiting_[count_++] = packet;
  ++accepted_;
  return true;
}

bool FrameReplay::run(CaptureReader& reader) {
  const Picos begin = clock_.now();
  FrameRead frame;
  Nanos first{0};
  Nanos latest{0};
  bool any = false;
  bool good = true;
  while (good && !done() && !stopped() && reader.next(frame)) {
    if (!any) first = latest = frame.at;
    any = true;
    if (frame.at < latest) ++report_.out_of_order;
    latest = std::max(latest, frame.at);
    if (options_.speed > 0) {
      const auto distance = static_cast<double>((latest - first).count);
      const Picos due =
          begin + picos_from_nanos(static_cast<std::int64_t>(distance / options_.speed));
      if (due > clock_.now()) {
        good = flush();
        receive();
        // In steps, so that a long gap can be interrupted.
        while (good && !stopped() && clock_.now() < due) {
          clock_.wait(earlier(due, clock_.now() + picos_from_micros(50'000)));
        }
        if (stopped()) break;
      }
      report_.late_ns.record(static_cast<std::uint64_t>(
          std::max<std::int64_t>(0, to_nanos(clock_.now() - due).count)));
    }
    good = good && take(frame);
  }
  good = flush() && good;
  receive();
  report_.elapsed += clock_.now() - begin;
  if (!reader.error().empty()) error_ = reader.error();
  return good && error_.empty() && !stopped();
}

}  // namespace paceline
