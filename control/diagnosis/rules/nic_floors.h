// How much longer than in an empty fabric the shortest round trips of each NIC are. Queues empty
// now and then; a NIC that takes longer for every packet shows even so.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "control/diagnosis/evidence.h"

namespace paceline::diagnosis {

class NicFloors {
 public:
  // A smoothed round trip may be stale, but fewer than a tenth of them are.
  struct Of {
    double low = 0.1;  // the round trip below which this share of them lies
    std::size_t least_windows = 5;
  };
  // Uses the windows that lie in this part of the time.
  NicFloors(const Evidence& evidence, const PartOfTime& part) : NicFloors(evidence, part, Of{}) {}
  NicFloors(const Evidence& evidence, const PartOfTime& part, const Of& of);

  // By NIC, in times of a full packet at its rate, above the median NIC; for sent and for received
  // data. Nothing: too few windows have measurements.
  const std::vector<std::optional<double>>& sent() const { return sent_; }
  const std::vector<std::optional<double>>& received() const { return received_; }
  // The lesser of the two.
  std::vector<std::optional<double>> both() const;

 private:
  std::vector<std::optional<double>> sent_;
  std::vector<std::optional<double>> received_;
};

// The NIC that stands out alone: `least` or more and six spreads above the others, and no other
// comes near. Nothing: there is none.
std::optional<std::uint32_t> alone_above(const std::vector<std::optional<double>>& floors,
                                         double least);

}  // namespace paceline::diagnosis
