// Devices, ports, protection domains, regions, address handles: what is asked and answered.
#include <arpa/inet.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/unit/verbs/open_device.h"

using namespace paceline;
using namespace paceline::verbs_test;
using attach::Operation;

TEST_CASE("the list has the service's NICs, or the one that PACELINE_NIC names",
          "[verbs][threads]") {
  FakeService service;
  int count = -1;
  ibv_device** list = ibv_get_device_list(&count);
  REQUIRE(list != nullptr);
  CHECK(count == 2);
  CHECK(std::string(ibv_get_device_name(list[0])) == "h0");
  CHECK(std::string(ibv_get_device_name(list[1])) == "h1");
  CHECK(std::string(list[1]->dev_name) == "uverbs1");
  CHECK(ibv_get_device_index(list[1]) == 1);
  CHECK(ibv_get_device_guid(list[1]) == fake_nic("h1", 2).guid);
  CHECK(list[2] == nullptr);
  // A second listing gives the same devices: librdmacm compares their addresses.
  ibv_device** const again = ibv_get_device_list(nullptr);
  CHECK((again[0] == list[0] && again[1] == list[1]));
  ibv_free_device_list(list);
  CHECK(std::string(ibv_get_device_name(again[0])) == "h0");
  ibv_free_device_list(again);
  ::setenv("PACELINE_NIC", "h1", 1);
  list = ibv_get_device_list(&count);
  ::unsetenv("PACELINE_NIC");
  CHECK(count == 1);
  CHECK(std::string(ibv_get_device_name(list[0])) == "h1");
  CHECK(std::string(list[0]->dev_name) == "uverbs1");
  // What was opened outlives the list.
  ibv_context* const context = ibv_open_device(list[0]);
  REQUIRE(context != nullptr);
  ibv_free_device_list(list);
  CHECK(std::string(ibv_get_device_name(context->device)) == "h1");
  CHECK(ibv_close_device(context) == 0);
}

TEST_CASE("without a service there is a list, and it is empty", "[verbs][threads]") {
  {
    const FakeService service;  // sets the name, and is gone
  }
  int count = -1;
  ibv_device** const list = ibv_get_device_list(&count);
  REQUIRE(list != nullptr);
  CHECK(count == 0);
  CHECK(list[0] == nullptr);
  ibv_free_device_list(list);
}

TEST_CASE("port attributes, through the context and by the old symbol", "[verbs][threads]") {
  OpenDevice device;
  ibv_port_attr port{};
  REQUIRE(ibv_query_port(device.context, 1, &port) == 0);
  CHECK(port.state == IBV_PORT_ACTIVE);
  CHECK(port.active_mtu == IBV_MTU_1024);
  CHECK(port.lid == 1);
  CHECK(port.link_layer == IBV_LINK_LAYER_ETHERNET);
  CHECK(port.gid_tbl_len == 4);
  CHECK(port.active_width == 1);
  CHECK(port.active_speed == 32);  // EDR: 25 Gb/s a lane
  CHECK(ibv_query_port(device.context, 2, &port) == EINVAL);

  struct {
    unsigned char attributes[offsetof(ibv_port_attr, port_cap_flags2)];
    unsigned char beyond;
  } old;
  std::memset(&old, 0xee, sizeof(old));
#undef ibv_query_port
  REQUIRE(ibv_query_port(device.context, 1, reinterpret_cast<_compat_ibv_port_attr*>(&old)) == 0);
  CHECK(old.beyond == 0xee);
  CHECK(old.attributes[offsetof(ibv_port_attr, link_layer)] == IBV_LINK_LAYER_ETHERNET);
}

TEST_CASE("GIDs in all forms", "[verbs][threads]") {
  OpenDevice device;
  const attach::NicInfo nic = fake_nic("h0", 1);
  ibv_gid gid{};
  REQUIRE(ibv_query_gid(device.context, 1, 1, &gid) == 0);
  CHECK(std::memcmp(gid.raw, nic.gids[1].data(), 16) == 0);
  CHECK(ibv_query_gid(device.context, 1, 9, &gid) == -1);
  ibv_gid_entry entry{};
  REQUIRE(ibv_query_gid_ex(device.context, 1, 0, &entry, 0) == 0);
  CHECK(entry.gid_type == IBV_GID_TYPE_ROCE_V2);
  CHECK(entry.port_num == 1);
  CHECK(ibv_query_gid_ex(device.context, 1, 2, &entry, 0) == ENODATA);
  CHECK(ibv_query_gid_ex(device.context, 1, 4, &entry, 0) == EINVAL);
  ibv_gid_entry table[4] = {};
  CHECK(ibv_query_gid_table(device.context, table, 4, 0) == 2);
  CHECK(table[1].gid_index == 1);
  CHECK(ibv_query_gid_table(device.context, table, 1, 0) == -EINVAL);
  __be16 key = 0;
  CHECK(ibv_query_pkey(device.context, 1, 0, &key) == 0);
  CHECK(key == 0xffff);
  CHECK(ibv_get_pkey_index(device.context, 1, 0xffff) == 0);
  CHECK(ibv_get_pkey_index(device.context, 1, 0x1234) == -1);
}

TEST_CASE("the extended attributes fit the caller's struct, shorter or longer",
          "[verbs][threads]") {
  OpenDevice device;
  ibv_device_attr_ex attr{};
  REQUIRE(ibv_query_device_ex(device.context, nullptr, &attr) == 0);
  CHECK(attr.orig_attr.max_qp == 64);
  CHECK(attr.orig_attr.max_sge == 4);
  CHECK(attr.packet_pacing_caps.qp_rate_limit_max == 25'000'000);
  CHECK(ibv_is_qpt_supported(attr.packet_pacing_caps.supported_qpts, IBV_QPT_RC));
  CHECK(attr.hca_core_clock == 1'000'000);
  auto* const operations = verbs_get_ctx(device.context);
  struct {
    ibv_device_attr_ex known;
    unsigned char beyond[16];
  } longer;
  std::memset(&longer, 0xee, sizeof(longer));
  REQUIRE(operations->query_device_ex(device.context, nullptr, &longer.known, sizeof(longer)) == 0);
  CHECK(longer.beyond[15] == 0);
  std::memset(&longer, 0xee, sizeof(longer));
  const std::size_t shorter = offsetof(ibv_device_attr_ex, odp_caps);
  REQUIRE(operations->query_device_ex(device.context, nullptr, &longer.known, shorter) == 0);
  CHECK(longer.known.orig_attr.max_qp == 64);
  CHECK(reinterpret_cast<unsigned char*>(&longer.known)[shorter] == 0xee);
}

TEST_CASE("registration says where the memory is and what may be done with it",
          "[verbs][threads]") {
  OpenDevice device;
  alignas(64) static char memory[4096];
  ibv_mr* const mr = ibv_reg_mr_iova(device.pd, memory, sizeof(memory), 0x5000,
                                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
  REQUIRE(mr != nullptr);
  const auto request = device.service.last(Operation::register_region);
  const auto r = request.as<attach::RegisterRequest>();
  CHECK(r.address == reinterpret_cast<std::uintptr_t>(memory));
  CHECK(r.length == 4096);
  CHECK(r.iova == 0x5000);
  CHECK(r.access == (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ));
  CHECK(r.pd == device.pd->handle);
  CHECK(request.beyond<attach::RegisterRequest>().size() == r.extents * sizeof(attach::Extent));
  CHECK(mr->addr == memory);
  CHECK(mr->length == 4096);
  CHECK(mr->lkey != mr->rkey);
  // Re-registration: of the access alone, then of the place.
  CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, IBV_ACCESS_REMOTE_READ) ==
        0);
  CHECK(mr->lkey == 0x111);
  CHECK(mr->rkey == 0x222);
  CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, memory + 64, 100, 0) == 0);
  CHECK(mr->addr == memory + 64);
  CHECK(mr->length == 100);
  CHECK(ibv_rereg_mr(mr, 1 << 10, nullptr, nullptr, 0, 0) == IBV_REREG_MR_ERR_INPUT);
  device.service.refuse(Operation::reregister_region, ENOMEM);
  CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, memory, 10, 0) != 0);
  CHECK(mr->addr == memory + 64);
  CHECK(ibv_dereg_mr(mr) == 0);
}

TEST_CASE("access flags: optional ones are dropped, the rest is honoured or refused",
          "[verbs][threads]") {
  OpenDevice device;
  static char memory[64];
  const auto attempt = [&](unsigned access) {
    errno = 0;
    ibv_mr* const mr = ibv_reg_mr_iova2(device.pd, memory, sizeof(memory), 0, access);
    if (mr != nullptr) ibv_dereg_mr(mr);
    return errno;
  };
  CHECK(attempt(IBV_ACCESS_RELAXED_ORDERING | IBV_ACCESS_LOCAL_WRITE) == 0);
  CHECK(device.service.last(Operation::register_region).as<attach::RegisterRequest>().access ==
        IBV_ACCESS_LOCAL_WRITE);
  CHECK(attempt(IBV_ACCESS_REMOTE_WRITE) == EINVAL);
  CHECK(attempt(IBV_ACCESS_REMOTE_ATOMIC) == EINVAL);
  CHECK(attempt(IBV_ACCESS_ZERO_BASED) == EOPNOTSUPP);
  CHECK(attempt(IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE) == 0);  // nothing is pinned anyway
  CHECK(attempt(1U << 31U) == EINVAL);
  device.service.refuse(Operation::register_region, EDQUOT);
  CHECK(attempt(IBV_ACCESS_LOCAL_WRITE) == EDQUOT);
}

TEST_CASE("a refusal is the caller's errno", "[verbs][threads]") {
  OpenDevice device;
  device.service.refuse(Operation::create_pd, EDQUOT);
  CHECK(ibv_alloc_pd(device.context) == nullptr);
  CHECK(errno == EDQUOT);
  device.service.refuse(Operation::create_qp, ENOMEM);
  ibv_qp_init_attr attr = device.wants();
  CHECK(ibv_create_qp(device.pd, &attr) == nullptr);
  CHECK(errno == ENOMEM);
  attr.qp_type = IBV_QPT_RAW_PACKET;
  CHECK(ibv_create_qp(device.pd, &attr) == nullptr);
  CHECK(errno == EOPNOTSUPP);
  attr = device.wants();
  attr.cap.max_send_sge = 5;
  CHECK(ibv_create_qp(device.pd, &attr) == nullptr);
  CHECK(errno == EINVAL);
  device.service.refuse(Operation::destroy_pd, EBUSY);
  CHECK(ibv_dealloc_pd(device.pd) == EBUSY);
  device.service.refuse(Operation::destroy_pd, 0);
  CHECK(ibv_create_cq(device.context, 0, nullptr, nullptr, 0) == nullptr);
  CHECK(ibv_create_cq(device.context, 16, nullptr, nullptr, 1) == nullptr);
  CHECK(errno == EINVAL);
}

TEST_CASE("device memory is reached by offset, in words, and registered zero-based",
          "[verbs][threads]") {
  OpenDevice device;
  ibv_device_attr_ex limits{};
  REQUIRE(ibv_query_device_ex(device.context, nullptr, &limits) == 0);
  ibv_alloc_dm_attr attr{limits.max_dm_size + 1, 0, 0};
  CHECK(ibv_alloc_dm(device.context, &attr) == nullptr);
  attr.length = 100;
  attr.comp_mask = 1;
  CHECK(ibv_alloc_dm(device.context, &attr) == nullptr);
  attr.comp_mask = 0;
  ibv_dm* const dm = ibv_alloc_dm(device.context, &attr);
  REQUIRE(dm != nullptr);
  const char text[] = "abcdefg";
  char back[8] = {};
  REQUIRE(ibv_memcpy_to_dm(dm, 92, text, 8) == 0);
  REQUIRE(ibv_memcpy_from_dm(back, dm, 92, 8) == 0);
  CHECK(std::string(back) == text);
  CHECK(ibv_memcpy_to_dm(dm, 96, text, 8) == EINVAL);
  CHECK(ibv_memcpy_to_dm(dm, 2, text, 4) == EINVAL);
  CHECK(ibv_memcpy_from_dm(back, dm, 0, 3) == EINVAL);
  CHECK(ibv_memcpy_from_dm(back, dm, ~std::uint64_t{3}, 8) == EINVAL);
  const unsigned access = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE;
  CHECK(ibv_reg_dm_mr(device.pd, dm, 0, 104, access) == nullptr);
  CHECK(ibv_reg_dm_mr(device.pd, dm, 0, 100, IBV_ACCESS_LOCAL_WRITE) == nullptr);
  ibv_mr* const mr = ibv_reg_dm_mr(device.pd, dm, 4, 96, access);
  REQUIRE(mr != nullptr);
  const auto r = device.service.last(Operation::register_region).as<attach::RegisterRequest>();
  CHECK(r.iova == 0);
  CHECK(r.length == 96);
  CHECK(r.access == IBV_ACCESS_LOCAL_WRITE);
  CHECK(ibv_free_dm(dm) == EBUSY);
  CHECK(ibv_dereg_mr(mr) == 0);
  ibv_mr* const nothing = ibv_reg_dm_mr(device.pd, dm, 0, 0, access);
  REQUIRE(nothing != nullptr);
  CHECK(nothing->lkey == 0);
  CHECK(ibv_dereg_mr(nothing) == 0);
  CHECK(ibv_free_dm(dm) == 0);
}

TEST_CASE("a parent domain is its domain by another name", "[verbs][threads]") {
  OpenDevice device;
  ibv_td_init_attr td_attr{};
  ibv_td* const td = ibv_alloc_td(device.context, &td_attr);
  REQUIRE(td != nullptr);
  ibv_parent_domain_init_attr attr{};
  attr.pd = device.pd;
  attr.td = td;
  ibv_pd* const parent = ibv_alloc_parent_domain(device.context, &attr);
  REQUIRE(parent != nullptr);
  CHECK(parent->handle == device.pd->handle);
  CHECK(ibv_dealloc_pd(device.pd) == EBUSY);
  CHECK(ibv_dealloc_td(td) == EBUSY);
  CHECK(ibv_dealloc_pd(parent) == 0);
  CHECK(ibv_dealloc_td(td) == 0);
}

TEST_CASE("the answer to a datagram goes where its header says it came from", "[verbs][threads]") {
  OpenDevice device;
  const attach::NicInfo nic = fake_nic("h0", 1);
  ibv_wc wc{};
  ibv_grh grh{};
  ibv_ah_attr attr{};
  wc.slid = 4;
  REQUIRE(ibv_init_ah_from_wc(device.context, 1, &wc, &grh, &attr) == 0);
  CHECK(attr.is_global == 0);
  CHECK(attr.dlid == 4);
  wc.wc_flags = IBV_WC_GRH;
  // IPv6: a GRH as it is.
  std::memcpy(grh.dgid.raw, nic.gids[1].data(), 16);
  grh.sgid.raw[15] = 9;
  grh.version_tclass_flow = htonl(6U << 28U | 0x22U << 20U | 0x12345U);
  REQUIRE(ibv_init_ah_from_wc(device.context, 1, &wc, &grh, &attr) == 0);
  CHECK(attr.is_global == 1);
  CHECK(attr.grh.sgid_index == 1);
  CHECK(attr.grh.dgid.raw[15] == 9);
  CHECK(attr.grh.traffic_class == 0x22);
  CHECK(attr.grh.flow_label == 0x12345);
  // IPv4 10.0.0.9 -> 0.0.0.1, with a good checksum, in the last 20 bytes.
  auto* const ip = reinterpret_cast<unsigned char*>(&grh) + 20;
  std::memset(&grh, 0xaa, sizeof(grh));
  const unsigned char header[20] = {0x45, 0x10, 0,  60, 0, 0, 0, 0, 64, 17,
                                    0,    0,    10, 0,  0, 9, 0, 0, 0,  1};
  std::memcpy(ip, header, 20);
  unsigned sum = 0;
  for (int i = 0; i < 20; i += 2) sum += static_cast<unsigned>(ip[i] << 8 | ip[i + 1]);
  sum = (sum & 0xffff) + (sum >> 16U);
  ip[10] = static_cast<unsigned char>(~sum >> 8U);
  ip[11] = static_cast<unsigned char>(~sum);
  REQUIRE(ibv_init_ah_from_wc(device.context, 1, &wc, &grh, &attr) == 0);
  CHECK(attr.grh.sgid_index == 0);
  CHECK(attr.grh.dgid.raw[10] == 0xff);
  CHECK(attr.grh.dgid.raw[12] == 10);
  CHECK(attr.grh.dgid.raw[15] == 9);
  CHECK(attr.grh.traffic_class == 0x10);
  // To another program.
  ip[19] = 200;
  CHECK(ibv_init_ah_from_wc(device.context, 1, &wc, &grh, &attr) == -1);
  ibv_ah* const ah = ibv_create_ah(device.pd, &attr);
  REQUIRE(ah != nullptr);
  CHECK(ibv_destroy_ah(ah) == 0);
}

TEST_CASE("a queue pair's attributes go there and back", "[verbs][threads]") {
  OpenDevice device;
  ibv_qp* const qp = device.make_pair();
  ibv_qp_attr attr{};
  attr.path_mtu = IBV_MTU_2048;
  attr.dest_qp_num = 77;
  attr.rq_psn = 5;
  attr.max_dest_rd_atomic = 3;
  attr.min_rnr_timer = 12;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.grh.dgid.raw[15] = 4;
  attr.ah_attr.grh.traffic_class = 0x68;
  attr.ah_attr.grh.flow_label = 99;
  attr.ah_attr.port_num = 1;
  attr.qp_state = IBV_QPS_RTR;
  const int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  REQUIRE(ibv_modify_qp(qp, &attr, mask) == 0);
  CHECK(qp->state == IBV_QPS_RTR);
  ibv_qp_attr back{};
  ibv_qp_init_attr init{};
  REQUIRE(ibv_query_qp(qp, &back, mask, &init) == 0);
  CHECK(back.path_mtu == IBV_MTU_2048);
  CHECK(back.dest_qp_num == 77);
  CHECK(back.ah_attr.grh.dgid.raw[15] == 4);
  CHECK(back.ah_attr.grh.traffic_class == 0x68);
  CHECK(back.ah_attr.grh.flow_label == 99);
  CHECK(back.cap.max_send_wr == 4);
  CHECK(init.send_cq == device.cq);
  CHECK(init.qp_type == IBV_QPT_RC);
  device.service.refuse(Operation::modify_qp, EINVAL);
  attr.qp_state = IBV_QPS_RTS;
  CHECK(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == EINVAL);
  CHECK(qp->state == IBV_QPS_RTR);
  ibv_qp_rate_limit_attr rate{1000, 64, 1024, 0};
  CHECK(ibv_modify_qp_rate_limit(qp, &rate) == 0);
  const auto asked = device.service.last(Operation::limit_rate).as<attach::RateRequest>();
  CHECK(asked.kbps == 1000);
  CHECK(asked.burst_bytes == 64);
  CHECK(asked.typical_packet_bytes == 1024);
}
