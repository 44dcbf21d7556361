// The faults that an operator gave to a running testbed and that are not over: for the status, for
// connections whose hashes collide, and for wrong clocks. Its times are those of a steady clock.
// For the control thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/base/units.h"
#include "dataplane/config/link_fault.h"

namespace paceline::service {

class FaultBook {
 public:
  static constexpr std::size_t kMost = 4096;  // older ones are forgotten

  struct Entry {
    config::LinkFault fault;
    std::vector<std::uint32_t> links;  // that are still disturbed
    Picos from{0};
    Picos until = kNever;
    // For a clock fault: when the clock is set right again.
    Picos right_at = kNever;
  };

  // Faults that it takes back, or repeats for the same target, end when it begins.
  void add(Picos now, const config::LinkFault& fault, std::vector<std::uint32_t> links);
  // Faults in force, or still to come.
  std::vector<Entry> not_over(Picos now);
  // Faults of the clock of a NIC's host, including those that are over: the clock has drifted
  // meanwhile.
  std::vector<Entry> of_clock(const std::string& nic) const;

  // The link by which a connection has to go that opens now; nothing: any. `number` tells
  // connections apart.
  std::optional<std::uint32_t> collision(Picos now, std::uint64_t number) const;

  static Picos steady_now();

 private:
  // Takes from the entry what `later` undoes: `up` and `clear` take the faults of their links, also
  // one after another. True: nothing of the entry is left.
  bool take_back(const config::LinkFault& later, const std::vector<std::uint32_t>& links,
                 Entry& entry) const;
  void drop_over(Picos now);

  std::vector<Entry> entries_;  // in the order in which they were given
};

}  // namespace paceline::service
