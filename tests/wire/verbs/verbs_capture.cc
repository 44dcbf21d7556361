// Writes a capture of every verb of RC, XRC, UC and UD, with what goes wrong among them, as two
// engines exchange it over a cable: for tshark (tshark_test.py) to judge.
//
// usage: verbs_capture OUT.pcapng     exit: 0 good, 1 something did not go as it should
#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>

#include "dataplane/port/capture/link_capture.h"
#include "tests/unit/transport/lab.h"

namespace paceline::transport::test {
namespace {

constexpr std::uint32_t kMtu = 1024;

void need(bool ok, const char* what) {
  if (!ok) throw std::runtime_error(what);
}

// Each with a lab of its own, one after the other in time.
class Recorder {
 public:
  explicit Recorder(LinkCapture& capture) : capture_(capture) {}

  void begin(Lab& lab) {
    base_ += last_ + picos_from_micros(1000);
    last_ = Picos{0};
    for (unsigned side = 0; side < 2; ++side) {
      lab.side(side).port.on_departure = [this, side](Picos at, const Packet& packet) {
        last_ = later(last_, at);
        capture_.show(base_ + at, side == 0, packet);
        capture_.settle(Fate::delivered, "");
      };
    }
  }
  Picos end() const { return base_ + last_; }

 private:
  LinkCapture& capture_;
  Picos base_{0};
  Picos last_{0};
};

LabOptions options_of(QpType type) {
  LabOptions options;
  options.engine.payload_mtu = kMtu;
  options.engine.peers = PeerPolicy::roce;
  options.qp.type = type;
  return options;
}

constexpr std::uint64_t kSizes[] = {0, 1, 2, 3, 64, kMtu, kMtu + 1, 4 * kMtu + 5};

// Every size of SEND and WRITE, with and without immediate; a number of receives to match.
std::uint64_t send_and_write(Lab& lab, const Lab::Pair& pair, bool reliable,
                             std::uint32_t srq = 0) {
  std::uint64_t id = 0;
  std::uint64_t at = 0;
  for (const WorkOpcode opcode : {WorkOpcode::send, WorkOpcode::send_imm, WorkOpcode::write,
                                  WorkOpcode::write_imm, WorkOpcode::send_invalidate}) {
    if (opcode == WorkOpcode::send_invalidate && !reliable) continue;
    for (const std::uint64_t size : kSizes) {
      if (takes_receive(opcode)) need(lab.b().post_receive(id, at, size), "a receive");
      WorkRequest request = lab.request(opcode, id++, at, at, size, 0xCAFE);
      request.solicited = size == 64;
      request.target_srq = srq;
      if (opcode == WorkOpcode::send_invalidate) {
        request.remote_key = lab.b().engine.regions().add_plain(
            0, {lab.b().memory.data(), 64}, access::remote | access::remote_invalidate);
      }
      need(lab.post(0, pair.a, request) == PostResult::ok, "a request");
      at += (size + 8) & ~std::uint64_t{7};
    }
  }
  return id;
}

void all_right(Lab& lab, std::uint64_t requests) {
  need(lab.run(picos_from_micros(100'000)), "the lab does not come to rest");
  const auto done = lab.a().sent();
  need(done.size() == requests, "not all requests completed");
  for (const Completion& c : done) need(c.status == CompletionStatus::success, "a request failed");
}

// XRC: from an initiator to a target, into a shared receive queue of its domain.
Lab::Pair connect_domain(Lab& lab, std::uint32_t& srq) {
  constexpr std::uint32_t kDomain = 1;
  srq = lab.b().engine.add_domain_queue({&lab.b().receives, &lab.b().receive_cq, 0, kDomain});
  QpConfig initiator = lab.qp_config(0);
  QpConfig target = lab.qp_config(1);
  initiator.type = QpType::xrc_initiator;
  target.type = QpType::xrc_target;
  target.domain = kDomain;
  initiator.receive_queue = target.receive_queue = nullptr;
  return lab.connect(initiator, target, 0xFF'FFF0, 7);
}

void reliable(Recorder& recorder, QpType type) {
  LabOptions options = options_of(QpType::rc);
  options.engine.cnp_interval = Picos{0};
  Lab lab(options);
  recorder.begin(lab);
  Lab::fill(lab.a().memory, 1);
  Lab::fill(lab.b().memory, 2);
  // A packet lost, one marked on the way: a NAK, a CNP.
  unsigned arrived = 0;
  lab.b().cable.set_script([&arrived](const wire::ParsedPacket& p, ImpairmentVerdict& verdict) {
    if (!p.properties.carries_payload()) return false;
    ++arrived;
    verdict.drop = arrived == 14;
    verdict.mark = arrived == 30;
    return true;
  });
  std::uint32_t srq = 0;
  const Lab::Pair pair = is_xrc(type) ? connect_domain(lab, srq) : lab.connect(0xFF'FFF0, 7);
  std::uint64_t id = send_and_write(lab, pair, true, srq);
  for (const std::uint64_t size : kSizes) {
    WorkRequest request = lab.request(WorkOpcode::read, id++, 0x8000, 0x8000, size);
    request.target_srq = srq;
    need(lab.post(0, pair.a, request) == PostResult::ok, "a READ");
  }
  for (const WorkOpcode opcode : {WorkOpcode::fetch_add, WorkOpcode::compare_swap}) {
    WorkRequest request = lab.request(opcode, id++, 0x10000, 0x10000, kAtomicBytes);
    request.swap_add = 3;
    request.target_srq = srq;
    need(lab.post(0, pair.a, request) == PostResult::ok, "an atomic");
  }
  all_right(lab, id);
  need(arrived > 30, "nothing was lost and marked");
}

// No receive in time, then a key that is not: RNR NAK and access NAK.
void refused(Recorder& recorder) {
  LabOptions options = options_of(QpType::rc);
  options.qp.min_rnr_timer = 1;
  Lab lab(options);
  recorder.begin(lab);
  const Lab::Pair pair = lab.connect();
  need(lab.post(0, pair.a, lab.request(WorkOpcode::send, 0, 0, 0, 100)) == PostResult::ok, "SEND");
  lab.run(picos_from_micros(5));
  need(lab.b().post_receive(0, 0, 100), "a receive");
  all_right(lab, 1);
  WorkRequest request = lab.request(WorkOpcode::write, 1, 0, 0, 100);
  request.remote_key ^= 0xFF;
  need(lab.post(0, pair.a, request) == PostResult::ok, "WRITE");
  need(lab.run(picos_from_micros(100'000)), "the lab does not come to rest");
  const auto done = lab.a().sent();
  need(done.size() == 1 && done[0].status == CompletionStatus::remote_access_error, "no refusal");
}

void unreliable(Recorder& recorder) {
  Lab lab(options_of(QpType::uc));
  recorder.begin(lab);
  Lab::fill(lab.a().memory, 3);
  const Lab::Pair pair = lab.connect(5, 6);
  all_right(lab, send_and_write(lab, pair, false));
}

void datagrams(Recorder& recorder) {
  Lab lab(options_of(QpType::ud));
  recorder.begin(lab);
  Lab::fill(lab.a().memory, 4);
  std::uint32_t numbers[2];
  for (unsigned side = 0; side < 2; ++side) {
    Engine& engine = lab.side(side).engine;
    numbers[side] = engine.create_qp(lab.qp_config(side));
    QpAttributes attributes;
    attributes.qkey = 0x1234;
    attributes.sq_psn = Psn(0xFF'FFFE);
    for (const QpState to : {QpState::init, QpState::rtr, QpState::rts}) {
      attributes.state = to;
      const std::uint32_t mask =
          transition_rule(QpType::ud, engine.view().state_of(numbers[side]), to).required;
      need(engine.modify_qp(lab.now(), numbers[side], attributes, mask | qp_attribute::state).ok(),
           "a state of UD");
    }
  }
  QpPath path;
  path.ip = wire::IpAddress::v4(0x0A00'0002);
  path.mac = wire::MacAddress::local(2);
  const std::uint32_t handle = lab.a().engine.create_address_handle(lab.now(), 0, path);
  std::uint64_t id = 0;
  for (const WorkOpcode opcode : {WorkOpcode::send, WorkOpcode::send_imm}) {
    for (const std::uint64_t size : kSizes) {
      if (size > kMtu) continue;
      need(lab.b().post_receive(id, id * 2048, 2048), "a receive");
      WorkRequest request = lab.request(opcode, id++, 0, 0, size, 0xBEEF);
      request.address_handle = handle;
      request.target_qp_number = numbers[1];
      request.target_qkey = 0x1234;
      need(lab.post(0, numbers[0], request) == PostResult::ok, "a datagram");
    }
  }
  all_right(lab, id);
}

int run(const char* path) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  LinkCaptureConfig config;
  config.application = "paceline verbs_capture";
  config.name = "cable";
  config.rate = rate_from_gbps(100);
  LinkCapture capture(out, config);
  Recorder recorder(capture);
  reliable(recorder, QpType::rc);
  reliable(recorder, QpType::xrc_initiator);
  refused(recorder);
  unreliable(recorder);
  datagrams(recorder);
  capture.finish(recorder.end());
  out.close();
  need(static_cast<bool>(out), "writing failed");
  return 0;
}

}  // namespace
}  // namespace paceline::transport::test

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: verbs_capture OUT.pcapng\n", stderr);
    return 2;
  }
  try {
    return paceline::transport::test::run(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "verbs_capture: %s\n", error.what());
    return 1;
  }
}
