#include "control/daemon/tuner/last_order.h"

#include <utility>

namespace paceline::daemon {

using tuner::online::Order;
using tuner::online::Role;

void LastOrder::give(Order order) {
  order_ = std::move(order);
  due_ = true;
}

void LastOrder::restore(std::optional<Order> order) {
  order_ = std::move(order);
  done_ = shown_ = order_ ? order_->number : 0;
  due_ = false;
}

void LastOrder::confirm() {
  done_ = order_->number;
  due_ = false;
}

bool LastOrder::settles() const { return order_ && order_->role != Role::candidate; }

bool LastOrder::settles_on(const std::vector<double>& values) const {
  return settles() && order_->values == values;
}

void LastOrder::replace(const std::vector<double>& values, std::string reason) {
  due_ = false;
  done_ = order_ ? order_->number : 0;
  if (order_) *order_ = {done_, Role::champion, values, "champion", std::move(reason)};
}

}  // namespace paceline::daemon
