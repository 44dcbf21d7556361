#include "control/diagnosis/rules/nic_bytes.h"

namespace paceline::diagnosis {

NicBytes::NicBytes(const Evidence& evidence)
    : sent_(evidence.nics.size(), std::vector<double>(evidence.window_ends.size())),
      received_(sent_) {
  for (const PairEvidence& pair : evidence.pairs) {
    for (std::size_t w = 0; w < pair.windows.size(); ++w) {
      const auto bytes = static_cast<double>(pair.windows[w].bytes);
      sent_[pair.src][w] += bytes;
      received_[pair.dst][w] += bytes;
    }
  }
}

double bytes_of(const PairEvidence& pair) {
  double bytes = 0;
  for (const PairWindow& window : pair.windows) bytes += static_cast<double>(window.bytes);
  return bytes;
}

}  // namespace paceline::diagnosis
