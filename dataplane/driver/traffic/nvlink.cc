#include "dataplane/driver/traffic/nvlink.h"

namespace paceline {

Picos NvLink::send(Picos now, std::uint32_t from, std::uint64_t bytes) {
  Sender& sender = senders_[from];
  sender.free_at = later(sender.free_at, now) + serialization_time(bytes, spec_.rate);
  sender.bytes += bytes;
  return sender.free_at + spec_.latency;
}

}  // namespace paceline
