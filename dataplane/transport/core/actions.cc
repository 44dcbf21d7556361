#include "dataplane/transport/core/actions.h"

#include <algorithm>

namespace paceline::transport {

void Actions::grow() {
  auto larger = std::make_unique<Action[]>(2 * std::size_t{capacity_});
  std::copy_n(list_.get(), count_, larger.get());
  for (std::uint32_t i = 0; i < count_; ++i) {
    if (larger[i].event.int_stack != nullptr) larger[i].event.int_stack = &larger[i].records;
  }
  list_ = std::move(larger);
  capacity_ *= 2;
}

}  // namespace paceline::transport
