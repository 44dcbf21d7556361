// What NICs sent each other, added up over queue pairs.
#pragma once

#include <cstddef>
#include <vector>

#include "control/diagnosis/evidence.h"

namespace paceline::diagnosis {

class NicBytes {
 public:
  explicit NicBytes(const Evidence& evidence);

  // Payload sent for the first time, by window; of what a NIC sends, and of what is sent to it.
  const std::vector<double>& sent(std::size_t nic) const { return sent_[nic]; }
  const std::vector<double>& received(std::size_t nic) const { return received_[nic]; }

 private:
  std::vector<std::vector<double>> sent_;
  std::vector<std::vector<double>> received_;
};

// Of one queue pair over all windows.
double bytes_of(const PairEvidence& pair);

}  // namespace paceline::diagnosis
