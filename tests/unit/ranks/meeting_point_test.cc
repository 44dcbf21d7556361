#include "tools/task/ranks/meeting_point.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "tools/task/ranks/rank_proof.h"
#include "tools/task/ranks/rank_team.h"

namespace paceline::tools {

TEST_CASE("where to meet survives being text", "[meeting]") {
  const MeetingPoint point{std::string("\0\x01\xFF", 3) + std::string(kTokenBytes - 3, 'x'),
                           40'000,
                           {"192.0.2.1", "2001:db8::1"}};
  const auto read = parse_meeting_point(point.to_text());
  REQUIRE(read.ok());
  CHECK(read.value.token == point.token);
  CHECK(read.value.port == point.port);
  CHECK(read.value.addresses == point.addresses);
}

TEST_CASE("too many addresses are left out", "[meeting]") {
  MeetingPoint point{std::string(kTokenBytes, 'x'), 1, {}};
  for (int i = 0; i < 1000; ++i) point.addresses.push_back("2001:db8::" + std::to_string(i));
  CHECK(point.to_text().size() <= MeetingPoint::kMostText);
  CHECK(parse_meeting_point(point.to_text()).value.addresses.size() > 100);
}

TEST_CASE("a text that is no meeting point is refused", "[meeting]") {
  const std::string token(2 * kTokenBytes, 'a');
  const std::string good = "1\n" + token + "\n127.0.0.1\n";
  REQUIRE(parse_meeting_point(good).ok());
  for (const std::string& text :
       {std::string(), std::string("\n"), "1\n" + token + "\n", "0\n" + token + "\n127.0.0.1\n",
        "65536\n" + token + "\n127.0.0.1\n", "x\n" + token + "\n127.0.0.1\n",
        "1\n" + token + "aa\n127.0.0.1\n", "1\n" + token.substr(1) + "g\n127.0.0.1\n",
        "1\n" + token + "\nlocalhost\n", good.substr(0, good.size() - 1)}) {
    CHECK_FALSE(parse_meeting_point(text).ok());
  }
}

TEST_CASE("this machine has addresses, the loopback's last", "[meeting]") {
  const std::vector<std::string> addresses = own_addresses();
  const auto loopback = std::find(addresses.begin(), addresses.end(), "127.0.0.1");
  REQUIRE(loopback != addresses.end());
  CHECK(std::all_of(loopback, addresses.end(), [](const std::string& address) {
    return address.starts_with("127.") || address == "::1";
  }));
}

TEST_CASE("proofs differ by token, role and both nonces", "[meeting]") {
  const std::string token(kTokenBytes, 't');
  const std::string proof = rank_proof(token, RankRole::other, "aaaa", "bbbb");
  CHECK(proof.size() == 64);
  CHECK(same_proof(proof, rank_proof(token, RankRole::other, "aaaa", "bbbb")));
  CHECK_FALSE(same_proof(proof, rank_proof(token, RankRole::first, "aaaa", "bbbb")));
  CHECK_FALSE(same_proof(proof, rank_proof(token, RankRole::other, "aaab", "bbbb")));
  CHECK_FALSE(same_proof(proof, rank_proof(token, RankRole::other, "aaaa", "bbbc")));
  CHECK_FALSE(same_proof(proof, proof.substr(1)));
  CHECK(secret_bytes(kTokenBytes) != secret_bytes(kTokenBytes));
}

TEST_CASE("a rank takes its part of the machine", "[meeting]") {
  CHECK(jobs_for(1) >= 1);
  CHECK(jobs_for(1'000'000) == 1);
}

}  // namespace paceline::tools
