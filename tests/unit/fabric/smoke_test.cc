#include <catch2/catch.hpp>
#include "dataplane/fabric/network.h"
TEST_CASE("x"){ paceline::EventWheel w(64); auto s=paceline::fabric::star(4,paceline::rate_from_gbps(100),paceline::picos_from_micros(1)); paceline::fabric::Network n(s,w,0); CHECK(n.check_conservation()==""); }
