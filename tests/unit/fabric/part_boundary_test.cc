#include "dataplane/fabric/wire/part_boundary.h"

#include <catch2/catch.hpp>
#include <vector>

namespace paceline::fabric {
namespace {

// Two switches with a host each, and a link between them: hosts 0, 1; switches 2, 3.
struct BoundaryRig {
  BoundaryRig() : boundary(spec_of()), links(6) {
    division.parts = 2;
    division.part_of_node = {0, 1, 0, 1};
    for (std::uint32_t id = 0; id < links.size(); ++id) links[id].id = id;
  }
  const FabricSpec& spec_of() {
    spec.hosts = 2;
    spec.switches = 2;
    spec.links = {{.a = 0, .b = 2}, {.a = 1, .b = 3}, {.a = 2, .b = 3}};
    return spec;
  }

  FabricSpec spec;
  Division division;
  PartBoundary boundary;
  std::vector<Link> links;
};

TEST_CASE("boundary: a whole fabric owns every link, and none leaves") {
  BoundaryRig rig;
  for (std::uint32_t id = 0; id < 6; ++id) CHECK(rig.boundary.owns(id));
  CHECK(rig.boundary.leaving().empty());
  CHECK(rig.boundary.part() == 0);
  CHECK(rig.boundary.division() == nullptr);
}

TEST_CASE("boundary: a part owns what its nodes send; the link between parts leaves one way") {
  BoundaryRig rig;
  rig.boundary.divide(rig.division, 1, rig.links);
  const bool owned[] = {false, false, true, true, false, true};
  for (std::uint32_t id = 0; id < 6; ++id) {
    INFO("link " << id);
    CHECK(rig.boundary.owns(id) == owned[id]);
    CHECK(rig.links[id].leaves() == (id == 5));
    CHECK(((rig.links[id].notable & Link::kEnters) != 0) == (id == 4));
    CHECK(((rig.links[id].impaired & Link::kCopies) != 0) == (id == 5));
  }
  CHECK(rig.boundary.leaving() == std::vector<std::uint32_t>{5});
}

TEST_CASE("boundary: copies go to the other part's list; a failure takes back its own alone") {
  BoundaryRig rig;
  rig.boundary.divide(rig.division, 0, rig.links);
  std::vector<std::vector<Crossing>> lists(2);
  rig.boundary.send_to(lists);
  CHECK(rig.boundary.first_sent() == kNever);
  Packet packet{};
  packet.digest = 3;
  packet.time = Picos{90};
  rig.boundary.send(4, packet);
  packet.time = Picos{70};
  rig.boundary.send(4, packet);
  lists[1].emplace_back(packet, 9);  // of another link
  CHECK(lists[0].empty());
  REQUIRE(lists[1].size() == 3);
  CHECK(lists[1][0].packet.digest == 3);
  CHECK(lists[1][0].link == 4);
  CHECK(rig.boundary.first_sent() == Picos{70});
  CHECK(rig.boundary.first_sent() == kNever);  // since the last call
  rig.boundary.recall(4);
  REQUIRE(lists[1].size() == 1);
  CHECK(lists[1][0].link == 9);
}

}  // namespace
}  // namespace paceline::fabric
