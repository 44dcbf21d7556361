// A message with its addresses, and the counters of messages.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dataplane/service/cm/mad/mad.h"
#include "dataplane/wire/headers/addresses.h"

namespace paceline::service::cm {

struct Parcel {
  std::size_t nic = 0;  // that sends it, or that received it from another machine
  wire::IpAddress source{};
  wire::IpAddress destination{};
  MadBytes bytes{};
};

// Messages between this machine and others.
struct MadCounts {
  std::uint64_t sent = 0;
  std::uint64_t repeated = 0;  // of `sent`: had been sent before
  std::uint64_t rejected = 0;  // of `sent`: REJ, and SIDR_REP other than a success
  std::uint64_t received = 0;
  std::uint64_t refused = 0;  // of `received`: another class, or another destination address
  std::uint64_t unknown = 0;  // of `received`: for an unknown communication id
};

}  // namespace paceline::service::cm
