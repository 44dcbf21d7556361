#include "dataplane/base/containers/slab.h"

#include <catch2/catch.hpp>
#include <memory_resource>
#include <vector>

namespace paceline {
namespace {

struct Witness {
  Witness(std::vector<int>& log_, int id_) : log(log_), id(id_) {}
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;
  ~Witness() { log.push_back(id); }
  std::vector<int>& log;
  int id;
};

TEST_CASE("slab: objects stay where they are and are destroyed last one first") {
  std::vector<int> log;
  {
    Slab<Witness> slab(3, *std::pmr::new_delete_resource());
    Witness* const first = &slab.emplace(log, 1);
    slab.emplace(log, 2);
    CHECK(slab.size() == 2);
    CHECK(&slab[0] == first);
    CHECK(slab.end() - slab.begin() == 2);
    CHECK(slab[1].id == 2);
  }
  CHECK(log == std::vector<int>{2, 1});
}

}  // namespace
}  // namespace paceline
