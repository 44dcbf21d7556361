// Messages of Linux's rdma_cm (6.1, over Soft-RoCE), as they came to our port from rping and
// udaddy. What is left out at the end of each is zero.
#include <catch2/catch.hpp>

#include <string_view>

#include "dataplane/service/cm/mad/ip_service.h"
#include "dataplane/service/cm/mad/mad.h"

namespace paceline::service::cm::from_linux {

namespace {

MadBytes bytes_of(std::string_view hex) {
  MadBytes out{};
  const auto digit = [&](std::size_t i) {
    const char c = hex[i];
    return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
  };
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    out[i / 2] = static_cast<std::byte>(digit(i) << 4U | digit(i + 1));
  }
  return out;
}

Mad read(std::string_view hex) {
  const auto mad = parse_mad(bytes_of(hex));
  REQUIRE(mad.has_value());
  return *mad;
}

constexpr std::string_view kReq =
    "010702030000000000000002bfc7e7dc0010000000000000dce7c7bf000000000000000001061c0600005efffe0000"
    "02"
    "00000000000000000000120100000001000000a0b779f4a7ffff57f0ffffffff00000000000000000000ffff0a4d00"
    "02"
    "00000000000000000000ffff0a4d00017bd62000004000980000000000000000000000000000000000000000000000"
    "00"
    "00000000000000000000000000000000000000000040c3240000000000000000000000000a4d000200000000000000"
    "00"
    "000000000a4d0001";
constexpr std::string_view kRep =
    "010702030000000000000000ae17c99d0013000000000000dfe7c7bfae17c99d000000000000110000000000c7b27f"
    "00"
    "010178e000005efffe000002";
constexpr std::string_view kRtu =
    "010702030000000000000002bfc7e7dc0014000000000000dce7c7bf7fda945d";
constexpr std::string_view kDreq =
    "010702030000000000000002bfc7e7dc0015000000000000dce7c7bf7fda945d000012";
constexpr std::string_view kDrep =
    "010702030000000000000000ae17c99d0016000000000000dfe7c7bfae17c99d";
constexpr std::string_view kRej =
    "010702030000000000000000e4e1a5cc001200000000000000000000e4e1a5cc00000008";
constexpr std::string_view kSidrReq =
    "010702030000000000000002bfc7e7d70017000000000000d7e7c7bfffff00000000000001111c060040b317000000"
    "00"
    "00000000000000000a4d00020000000000000000000000000a4d0001";
constexpr std::string_view kSidrRep =
    "01070203000000000000000087b7963a001800000000000087b7963a00000000000016000000000001111c06012345"
    "67";

const wire::IpAddress kLinux = wire::IpAddress::v4(0x0A4D'0002);
const wire::IpAddress kOurs = wire::IpAddress::v4(0x0A4D'0001);

}  // namespace

TEST_CASE("what Linux writes is read and written without a difference") {
  for (const std::string_view hex : {kReq, kRep, kRtu, kDreq, kDrep, kRej, kSidrReq, kSidrRep}) {
    CAPTURE(hex);
    REQUIRE(build_mad(read(hex)) == bytes_of(hex));
  }
}

TEST_CASE("Linux's REQ says who asks whom for what") {
  const Mad req = read(kReq);
  REQUIRE(req.attribute == Attribute::req);
  REQUIRE(req.transaction == 0x2'BFC7'E7DC);
  REQUIRE(req.service_id == service_id(PortSpace::tcp, 7174));
  REQUIRE((req.qp_number == 0x12 && req.starting_psn == 0xB779F4));
  REQUIRE((req.responder_resources == 1 && req.initiator_depth == 1));
  REQUIRE((req.retry_count == 7 && req.rnr_retry_count == 7 && req.service_type == 0));
  REQUIRE((req.remote_response_timeout == 20 && req.local_response_timeout == 20));
  REQUIRE((req.most_retries == 15 && req.path_mtu == 5 && req.partition_key == 0xFFFF));
  REQUIRE((req.path.local == kLinux && req.path.remote == kOurs));
  REQUIRE((req.path.hop_limit == 64 && req.path.ack_timeout == 19));
  const auto header = read_ip_header(req.private_data);
  REQUIRE(header == IpHeader{kLinux, kOurs, 0xC324, true});
}

TEST_CASE("Linux's answers name both ends, and a lookup its queue pair") {
  const Mad rep = read(kRep);
  REQUIRE((rep.local_id == 0xDFE7'C7BF && rep.remote_id == 0xAE17'C99D));
  REQUIRE((rep.qp_number == 0x11 && rep.starting_psn == 0xC7B27F));
  REQUIRE((rep.responder_resources == 1 && rep.initiator_depth == 1 && rep.rnr_retry_count == 7));
  REQUIRE(rep.target_ack_delay == 15);
  REQUIRE(read(kDreq).qp_number == 0x12);
  const Mad rej = read(kRej);
  REQUIRE((rej.local_id == 0 && rej.about == About::req));
  REQUIRE(rej.reason == reject_reason::invalid_service_id);
  REQUIRE(read_ip_header(read(kSidrReq).private_data)->source == kLinux);
  const Mad sidr = read(kSidrRep);
  REQUIRE((sidr.qp_number == 0x16 && sidr.qkey == 0x0123'4567 && sidr.status == 0));
}

}  // namespace paceline::service::cm::from_linux
