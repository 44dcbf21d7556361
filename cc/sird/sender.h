// All that SIRD's channels of a port know of each other: how much credit has accumulated at this
// host from all receivers. While it is more than SThr, channels with credit report csn.
//
// Credit is checked when a channel gets an event, at most four times per round trip. With one
// receiver, nothing is reported: it cannot grant more than the uplink carries (as in the authors'
// simulator).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cc/interface/uplink_arbiter.h"
#include "cc/sird/sird.h"

namespace paceline::cc {

class SirdSender final : public UplinkArbiter {
 public:
  explicit SirdSender(const SirdParams& params) : params_(params) {}

  void update(Nanos now, std::uint32_t context, const UplinkWant& want) override;
  void forget(Nanos now, std::uint32_t context) override;
  std::size_t poll(Nanos now, std::span<ShareOutput> out) override;
  void set_params(const ParamBlock& params) override;
  Nanos next_wake() const override;
  std::string check_invariants(Nanos now) const override;

  bool congested() const { return congested_; }

 private:
  struct Entry {
    std::uint32_t credit = 0;
    bool known = false;  // not forgotten
    bool told = false;   // what it knows
    bool due = false;    // in due_
    bool asks = false;   // a start that this arbiter does not give
  };

  void put(std::uint32_t context, const UplinkWant& want);
  void tell(std::uint32_t context);

  SirdParams params_;
  std::vector<Entry> entries_;  // by context
  std::vector<std::uint32_t> due_;
  std::size_t due_head_ = 0;
  std::uint64_t sum_ = 0;
  std::uint32_t holders_ = 0;  // contexts with credit
  std::int64_t look_at_ = 0;   // not before
  bool changed_ = false;
  bool congested_ = false;
};

}  // namespace paceline::cc
