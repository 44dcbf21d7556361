// Whether a program goes by memory before completions (paceline exec --reorder). The service holds
// placements back, half of them with their last bytes in memory already, which half by the toss of
// a coin (attach/injection/order_window.h). Whoever goes by completions cannot tell the two apart,
// so what it posts meanwhile is as likely in one half as in the other. Per open device.
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

// Posted while placements were held, once each at most.
struct OrderCounts {
  std::uint64_t end_first = 0;  // of those with their end in memory
  std::uint64_t others = 0;
};

// By chance, a program that goes by completions alone is called guilty once in 10,000 runs at most:
// Hoeffding's bound, exp(-d^2 / 2n), for a difference d of n tosses of a coin.
constexpr bool goes_by_memory(const OrderCounts& counts) {
  if (counts.end_first <= counts.others) return false;
  const std::uint64_t difference = counts.end_first - counts.others;
  return difference * difference >= 19 * (counts.end_first + counts.others);
}

class OrderCheck {
 public:
  // What a program is told at its end at most.
  static constexpr std::size_t kMostExamples = 4;

  OrderCheck(std::uint32_t seed, std::string nic);
  OrderCheck(const OrderCheck&) = delete;
  OrderCheck& operator=(const OrderCheck&) = delete;
  // Says what was found, unless the end of the process has done so.
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

// What the environment asks for; nullptr: nothing. `error`: what is wrong with it.
std::unique_ptr<OrderCheck> order_check_of_environment(std::string nic, std::string& error);

}  // namespace paceline::verbs
