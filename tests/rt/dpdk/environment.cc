#include "tests/rt/dpdk/environment.h"

#include <memory>
#include <stdexcept>

namespace paceline::test {

Eal& eal() {
  static const std::unique_ptr<Eal> started = [] {
    EalStart start = Eal::start({});
    if (start.eal == nullptr) throw std::runtime_error(start.error);
    return std::move(start.eal);
  }();
  return *started;
}

}  // namespace paceline::test
