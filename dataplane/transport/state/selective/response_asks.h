// Selective repeat's requester: missing READ responses that are asked for again, range by range,
// and how long that takes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "dataplane/base/containers/fixed_ring.h"
#include "dataplane/base/protocol/psn.h"
#include "dataplane/base/units.h"
#include "dataplane/transport/state/round_trip.h"

namespace paceline::transport {

// READ responses that are asked for again, by a request of their own for [first, first + count).
struct ResponseAsk {
  Psn first;
  std::uint32_t count = 0;
  std::uint64_t bytes = 0;  // responder: bytes of these that are not sent yet
  bool begun = false;       // responder: one was sent
};

class ResponseAsks {
 public:
  // Requests that wait to be sent.
  bool empty() const { return asks_.empty(); }
  std::uint32_t waiting() const { return asks_.size(); }
  // Asks for `psn`: by the newest request, if `psn` follows its range and `joins` (belongs to the
  // same READ), or by a request of its own. False: there is no room for another request.
  bool add(Psn psn, bool joins, Psn oldest) {
    if (joins && !asks_.empty()) {
      ResponseAsk& newest = asks_.at(asks_.tail() - 1);
      if (newest.first + newest.count == psn && !before(newest.first, oldest)) {
        ++newest.count;
        return true;
      }
    }
    if (asks_.full()) return false;
    asks_.push({psn, 1});
    return true;
  }
  // Everything before `oldest` is here: the next request does not ask for it.
  void drop_before(Psn oldest) {
    for (; !asks_.empty(); asks_.pop()) {
      ResponseAsk& ask = asks_.front();
      const std::int32_t here = distance(oldest, ask.first);
      if (here <= 0) return;
      if (here >= static_cast<std::int32_t>(ask.count)) continue;
      ask.first = oldest;
      ask.count -= static_cast<std::uint32_t>(here);
      return;
    }
  }
  // The oldest request is sent. Requires !empty().
  ResponseAsk take() {
    const ResponseAsk oldest = asks_.front();
    asks_.pop();
    return oldest;
  }

  // A request counts as in flight until any answer comes, as it has no sequence number of its own.
  // `bytes`: on the wire. answered() returns those of all requests in flight.
  void sent(std::uint32_t bytes) { flying_bytes_ += bytes; }
  std::uint64_t answered() { return std::exchange(flying_bytes_, 0); }

  // A response arrived that was asked for at that time.
  void came(Picos asked_at) { newest_ = later(newest_, asked_at); }
  Picos newest() const { return newest_; }
  const RoundTripEstimate& round_trip() const { return round_trip_; }
  void measured(std::uint32_t rtt_ns) { round_trip_.add(rtt_ns); }
  // A response came twice. True: it counts. It does so once per round trip (`span`, or that of
  // asking, if it is longer), since whole ranges are asked for at a time.
  bool repeated(Picos now, std::uint32_t span_ns) {
    if (repeated_at_ + picos_from_nanos(std::max(span_ns, round_trip_.smoothed_ns())) > now)
      return false;
    repeated_at_ = now;
    return true;
  }

  // Forgets all requests. Measured round trips stay known.
  void clear() {
    asks_.clear();
    flying_bytes_ = 0;
    newest_ = Picos{-1};
  }

 private:
  FixedRing<ResponseAsk> asks_{16};
  std::uint64_t flying_bytes_ = 0;
  Picos newest_{-1};       // latest time of asking among the responses asked for that came
  Picos repeated_at_{-1};  // when one that came twice last counted
  RoundTripEstimate round_trip_;
};

}  // namespace paceline::transport
