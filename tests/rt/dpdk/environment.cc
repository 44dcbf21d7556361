#include "tests/rt/dpdk/environment.h"

#include <memory>
#include <stdexcept>

namespace paceline::test {

namespace {

std::unique_ptr<Eal>& slot() {
  static std::unique_ptr<Eal> started;
  return started;
}

}  // namespace

Eal& eal() {
  if (slot() == nullptr) {
    EalStart start = Eal::start({});
    if (start.eal == nullptr) throw std::runtime_error(start.error);
    slot() = std::move(start.eal);
  }
  return *slot();
}

bool eal_is_up() { return slot() != nullptr; }

}  // namespace paceline::test
