// Messages in transit: those between NIC instances of this service, which stay here as bytes until
// they are delivered, and those to other machines, which the caller takes to queue pair 1. Counts
// the latter in both directions.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "dataplane/service/cm/mad/mad.h"
#include "dataplane/service/cm/mad/parcel.h"

namespace paceline::service::cm {

class Mailbox {
 public:
  // `outside`: the destination is another machine.
  void post(const Parcel& parcel, const Mad& mad, bool outside);

  // Between NIC instances of this service, the oldest first.
  std::optional<Parcel> next();
  // Messages to other machines since the last call.
  std::vector<Parcel> take_leaving() { return std::exchange(leaving_, {}); }

  MadCounts& counts() { return counts_; }
  const MadCounts& counts() const { return counts_; }

 private:
  std::deque<Parcel> parcels_;
  std::vector<Parcel> leaving_;
  MadCounts counts_;
};

// The answer to a request that nobody takes.
Mad refusal_of(const Mad& request, std::uint16_t reason);
// The answer to a message with an unknown communication id; nothing if it needs none.
std::optional<Mad> answer_to_unknown(const Mad& mad);

}  // namespace paceline::service::cm
