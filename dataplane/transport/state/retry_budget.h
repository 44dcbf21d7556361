// How often a requester may try again without progress (vol. 1, 9.7.5.2.8).
#pragma once

#include <cstdint>

namespace paceline::transport {

class RetryBudget {
 public:
  static constexpr std::uint8_t kForEver = 7;  // for tries after an RNR NAK

  // There was progress: renews the tries after timeouts and sequence NAKs, and those after RNR
  // NAKs.
  void renew(std::uint8_t retries, std::uint8_t rnr_retries) {
    retries_ = retries;
    rnr_retries_ = rnr_retries;
  }
  // The path works, though there was no progress.
  void renew_retries(std::uint8_t retries) { retries_ = retries; }
  // Takes a try. False: none is left.
  bool spend() {
    if (retries_ == 0) return false;
    --retries_;
    return true;
  }
  bool spend_rnr() {
    if (rnr_retries_ == 0) return false;
    if (rnr_retries_ != kForEver) --rnr_retries_;
    return true;
  }

 private:
  std::uint8_t retries_ = 0;
  std::uint8_t rnr_retries_ = 0;
};

}  // namespace paceline::transport
