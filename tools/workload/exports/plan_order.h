// The dependencies of a plan, in an order in which everything can begin.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dataplane/driver/traffic/message_plan.h"

namespace paceline::workload {

class PlanOrder {
 public:
  // The plan must outlive this, and no message may wait for itself by way of others.
  explicit PlanOrder(const MessagePlan& plan);

  std::span<const std::uint32_t> waits_of(std::uint32_t message) const {
    return {waits_.data() + first_[message], waits_.data() + first_[message + 1]};
  }
  std::size_t waits() const { return waits_.size(); }
  // All messages, each behind its dependencies.
  const std::vector<std::uint32_t>& order() const { return order_; }
  // The time before which those that it waits for cannot begin, by their own start or that of
  // others before them.
  Picos awaited_start(std::uint32_t message) const { return awaited_start_[message]; }

 private:
  void sort();

  const MessagePlan& plan_;
  std::vector<std::size_t> first_;  // in waits_, by message
  std::vector<std::uint32_t> waits_;
  std::vector<std::uint32_t> order_;
  std::vector<Picos> awaited_start_;
};

// What a format may have to leave out.
struct PlanDrops {
  bool computing = false;
  bool waits = false;
};

// "message 7 (2->3)", for errors.
std::string message_text(const MessagePlan& plan, std::uint32_t message);

// Error, or nothing: times of computing, and the gaps before messages.
std::vector<std::string> check_computing(const MessagePlan& plan, const char* format);

}  // namespace paceline::workload
