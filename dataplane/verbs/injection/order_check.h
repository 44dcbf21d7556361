// Whether a program relies on memory before completions (paceline exec --reorder). The service
// holds placements back, half of them with their last bytes already in memory, chosen by the toss
// of a coin (attach/injection/order_window.h). A program that relies on completions cannot tell the
// two apart, so its posts meanwhile are equally likely in both halves. Per open device.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "dataplane/attach/injection/order_window.h"
#include "dataplane/attach/protocol.h"

namespace paceline::verbs {

// Placements during which the program posted, each counted at most once.
struct OrderCounts {
  std::uint64_t end_first = 0;  // placements among these with their end in memory
  std::uint64_t others = 0;
};

// A program that relies on completions alone is called guilty by chance in at most one of 10,000
// runs: Hoeffding's bound, exp(-d^2 / 2n), for a difference d of n tosses of a coin.
constexpr bool goes_by_memory(const OrderCounts& counts) {
  if (counts.end_first <= counts.others) return false;
  const std::uint64_t difference = counts.end_first - counts.others;
  return difference * difference >= 19 * (counts.end_first + counts.others);
}

class OrderCheck {
 public:
  // The most examples that a program is told at its end.
  static constexpr std::size_t kMostExamples = 4;

  OrderCheck(std::uint32_t seed, std::string nic);
  OrderCheck(const OrderCheck&) = delete;
  OrderCheck& operator=(const OrderCheck&) = delete;
  // Reports the findings, unless the end of the process has done so.
  ~OrderCheck();

  // Marks one region.
  void mark(attach::Extent& extent) const;
  // The program posts. True when it does so the first time while this placement is held, its end is
  // in memory, and an example is still wanted: then note() has its name.
  bool acted(attach::OrderWindow& out);
  void note(const attach::OrderWindow& window, const std::string& request);

 private:
  struct Record;
  static void at_exit(int status, void* of);

  const std::uint32_t seed_;
  Record* const
      record_;  // never freed: the service may write to it, and the end of the process reads it
};

// The check that the environment asks for; nullptr: none. `error`: what is wrong with it.
std::unique_ptr<OrderCheck> order_check_of_environment(std::string nic, std::string& error);

}  // namespace paceline::verbs
