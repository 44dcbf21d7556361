// The tuner's last order, and how far it has been carried out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "control/tuner/online/tuner.h"

namespace paceline::daemon {

class LastOrder {
 public:
  const std::optional<tuner::online::Order>& order() const { return order_; }
  // An order that has to be carried out; it replaces the one before.
  void give(tuner::online::Order order);
  // A saved order, taken as carried out; or none.
  void restore(std::optional<tuner::online::Order> order);

  // It still has to be carried out.
  bool due() const { return due_; }
  // Somebody carries it out now; then one of confirm() and retry() follows, if it is not replaced.
  void begin() { due_ = false; }
  void retry() { due_ = true; }
  // Order `number` is in force.
  void done(std::uint64_t number) { done_ = number; }
  void confirm();
  // It, and nothing newer, is in force.
  bool in_force() const { return order_ && done_ == order_->number && !due_; }

  // Whether it puts values in force outside of trials, and whether these are `values`.
  bool settles() const;
  bool settles_on(const std::vector<double>& values) const;
  // Another client has put `values` in force: nothing has to be carried out.
  void replace(const std::vector<double>& values, std::string reason);

  // The number of the order that was in force when the last sample of every NIC was taken.
  std::uint64_t shown() const { return shown_; }
  void show() { shown_ = done_; }

 private:
  std::optional<tuner::online::Order> order_;
  std::uint64_t done_ = 0;  // number of the order that is in force
  std::uint64_t shown_ = 0;
  bool due_ = false;
};

}  // namespace paceline::daemon
