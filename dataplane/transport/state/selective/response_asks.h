// Selective repeat's requester: READ responses that are missing and are asked for again, range by
// range, and what is known of how long that takes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "dataplane/base/containers/fixed_ring.h"
#include "dataplane/base/protocol/psn.h"
#include "dataplane/base/units.h"
#include "dataplane/transport/state/round_trip.h"

namespace paceline::transport {

// READ responses that are asked for again: a request of its own for [first, first + count).
struct ResponseAsk {
  Psn first;
  std::uint32_t count = 0;
  std::uint64_t bytes = 0;  // responder: of them, not sent yet
  bool begun = false;       // responder: one was sent
};

class ResponseAsks {
 public:
  // Requests that wait to be sent.
  bool empty() const { return asks_.empty(); }
  std::uint32_t waiting() const { return asks_.size(); }
  // `psn` is asked for: by the newest request, if `psn` follows what that asks for and `joins`,
  // that is, belongs to the same READ; or by a request of its own. False: there is no room for
  // that.
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
  // What comes before `oldest` is here: the next request does not ask for it.
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
  // The oldest is sent. Requires !empty().
  ResponseAsk take() {
    const ResponseAsk oldest = asks_.front();
    asks_.pop();
    return oldest;
  }

  // A request is in flight until something answers, as no sequence number is its own. Bytes on the
  // wire; answered(): of all that were.
  void sent(std::uint32_t bytes) { flying_bytes_ += bytes; }
  std::uint64_t answered() { return std::exchange(flying_bytes_, 0); }

  // A response came that was asked for then.
  void came(Picos asked_at) { newest_ = later(newest_, asked_at); }
  Picos newest() const { return newest_; }
  const RoundTripEstimate& round_trip() const { return round_trip_; }
  void measured(std::uint32_t rtt_ns) { round_trip_.add(rtt_ns); }
  // A response came twice. True: it counts, which is so once per round trip (`span`, or that of
  // asking, if that is longer), since whole ranges are asked for at a time.
  bool repeated(Picos now, std::uint32_t span_ns) {
    if (repeated_at_ + picos_from_nanos(std::max(span_ns, round_trip_.smoothed_ns())) > now)
      return false;
    repeated_at_ = now;
    return true;
  }

  // Nothing is asked for. Round trips stay known.
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
