#include "tests/soak/troubled_pair.h"

#include <fmt/format.h>

#include <algorithm>

namespace paceline::soak {

using transport::QpState;
using transport::WorkOpcode;

// What one side asks of the other.
class TroubledPair::Direction final : public Stream {
 public:
  Direction(TroubledPair& pair, unsigned from, Random random)
      : pair_(pair), from_(from), random_(random) {}

  void on_sent(const transport::Completion& c) override {
    while (!waiting_.empty() && waiting_.front().life != pair_.life_ &&
           waiting_.front().id != c.wr_id) {
      waiting_.pop_front();  // RESET completes nothing, the end of a queue pair does
    }
    require(!waiting_.empty() && waiting_.front().id == c.wr_id,
            "qp {:#x}: request {} completes, {} is the oldest", c.qp_number, c.wr_id,
            waiting_.empty() ? next_ : waiting_.front().id);
    waiting_.pop_front();
  }

  void on_received(const transport::Completion& c) override {
    require(c.wr_id < received_, "qp {:#x}: a receive completes that was never posted",
            c.qp_number);
    require(c.status != transport::CompletionStatus::success || c.bytes <= kReceive,
            "qp {:#x}: a receive of {} bytes", c.qp_number, c.bytes);
  }

  void post() override {
    if (pair_.stage_.closing || failed()) return;
    while (of_this_life() < depth_ && post_one()) {
    }
  }

  void step() override {
    if (from_ == 0) pair_.step();
    if (random_.below(32) == 0) depth_ = 1 + random_.below(12);
    Host& target = pair_.host(1 - from_);
    if (random_.below(8) != 0) {
      transport::ReceiveRequest receive;
      receive.wr_id = received_;
      receive.address = Host::kBase + pair_.base_ + kHalf / 2;
      receive.length = kReceive;
      receive.local_key = target.key;
      const std::uint32_t qp = pair_.qp_[1 - from_];
      if (target.engine.post_receive(pair_.stage_.now, qp, receive)) ++received_;
      target.touched = true;
    }
    post();
    if (!pair_.stage_.closing && failed() && random_.below(4) == 0) post_one();  // flushed at once
  }

  bool expects_events() const override { return true; }
  bool finished() const override { return waiting_.empty() || waiting_.back().life != pair_.life_; }
  std::string state() const override {
    return fmt::format("qp {:#x} (in trouble): {} requests wait", pair_.qp_[from_],
                       waiting_.size());
  }
  void check_finished() override {
    const std::span<std::byte> forbidden = pair_.host(from_).bytes(pair_.base_ + kHalf, kHalf);
    require(poison_mismatch(forbidden) == kHalf, "qp {:#x}: memory was written without a right",
            pair_.qp_[from_]);
  }
  void add_to(Totals& totals) const override { totals.messages += next_; }

 private:
  struct Request {
    std::uint64_t id;
    std::uint64_t life;
  };

  std::uint64_t of_this_life() const {
    return static_cast<std::uint64_t>(
        std::count_if(waiting_.begin(), waiting_.end(),
                      [this](const Request& request) { return request.life == pair_.life_; }));
  }
  bool failed() const { return pair_.state(from_) == QpState::error; }

  bool post_one() {
    constexpr WorkOpcode kOpcodes[] = {
        WorkOpcode::send, WorkOpcode::send,      WorkOpcode::write,    WorkOpcode::write_imm,
        WorkOpcode::read, WorkOpcode::fetch_add, WorkOpcode::send_imm, WorkOpcode::compare_swap};
    Host& initiator = pair_.host(from_);
    const unsigned to = 1 - from_;
    transport::WorkRequest r;
    r.wr_id = next_;
    r.opcode = kOpcodes[random_.below(std::size(kOpcodes))];
    r.length = random_.below(4) == 0 ? 0 : random_.below(kReceive + 1);
    if (random_.below(8) == 0 && !transport::takes_receive(r.opcode)) r.length = kWindow;
    if (transport::is_atomic(r.opcode)) r.length = transport::kAtomicBytes;
    r.solicited = random_.below(4) == 0;
    r.fence = random_.below(8) == 0;
    r.local_address = Host::kBase + pair_.base_;
    r.local_key = random_.below(4) == 0 ? initiator.slow_key : initiator.key;
    r.remote_address = Host::kBase + pair_.base_;
    r.remote_key = random_.below(2) == 0 ? pair_.window_[to] : pair_.bindable_[to];
    switch (random_.below(256)) {
      case 0:
        if (transport::is_write(r.opcode) || transport::is_atomic(r.opcode)) {
          r.remote_address += kHalf;
          r.remote_key = pair_.readable_[to];
        }
        break;
      case 1:
        r.remote_key = pair_.stale_[to];
        break;
      case 2:
        r.remote_address += kHalf - kReceive / 2;  // over the end of what it may
        break;
      case 3:
        if (r.opcode == WorkOpcode::send) r.length = 2 * kReceive;
        break;
      default:
        break;
    }
    const auto result = initiator.engine.post_send(pair_.stage_.now, pair_.qp_[from_], r);
    if (result != transport::PostResult::ok) return false;
    waiting_.push_back({next_++, pair_.life_});
    initiator.touched = true;
    return true;
  }

  TroubledPair& pair_;
  unsigned from_;
  Random random_;
  std::deque<Request> waiting_;
  std::uint64_t depth_ = 4;
  std::uint64_t next_ = 0;
  std::uint64_t received_ = 0;  // posted
};

TroubledPair::TroubledPair(Stage& stage, std::uint64_t base, std::uint16_t source_port,
                           Random random)
    : stage_(stage), base_(base), source_port_(source_port), random_(random) {
  using namespace transport;
  for (unsigned side = 0; side < 2; ++side) {
    RegionTable& regions = host(side).engine.regions();
    bindable_[side] = regions.add_plain(Host::kBase + base_, host(side).bytes(base_, kHalf),
                                        Host::kAccess | access::window_bind);
    readable_[side] = regions.add_plain(
        Host::kBase + base_ + kHalf, host(side).bytes(base_ + kHalf, kHalf), access::remote_read);
    window_[side] = stale_[side] = regions.add_window(WindowType::one, 0);
    receives_[side] = std::make_unique<ReceiveQueue>(16, ReceiveSharing::owned);
    make(side);
    bind(side);
  }
  join();
}

std::unique_ptr<Stream> TroubledPair::stream(unsigned side) {
  return std::make_unique<Direction>(*this, side, Random(random_.next(), side));
}

void TroubledPair::make(unsigned side) {
  transport::QpConfig config;
  config.path_mtu = 1024;
  config.send_queue_depth = 16;
  config.max_rd_atomic = config.max_dest_rd_atomic = 4;
  config.rnr_retry = static_cast<std::uint8_t>(random_.below(8));
  config.min_rnr_timer = 2;
  config.retransmit_timeout = picos_from_micros(200);
  config.send_cq = &host(side).send_cq;
  config.receive_cq = &host(side).receive_cq;
  config.receive_queue = receives_[side].get();
  qp_[side] = host(side).engine.create_qp(config);
}

void TroubledPair::join() {
  std::array<Psn, 2> first;
  for (Psn& psn : first) psn = Psn(static_cast<std::uint32_t>(random_.below(0x100'0000)));
  for (unsigned side = 0; side < 2; ++side) {
    const auto remote = host(1 - side).engine.address_of(qp_[1 - side], first[1 - side]);
    require(host(side).engine.connect(stage_.now, qp_[side], remote, first[side], source_port_),
            "queue pairs do not connect");
    host(side).touched = true;
  }
}

bool TroubledPair::change(unsigned side, QpState to) {
  transport::QpAttributes a;
  a.state = to;
  a.notify_drained = true;
  std::uint32_t mask = transport::qp_attribute::state;
  if (to == QpState::sqd) mask |= transport::qp_attribute::notify_drained;
  host(side).touched = true;
  return host(side).engine.modify_qp(stage_.now, qp_[side], a, mask).ok();
}

// Both ends begin a new life.
void TroubledPair::renew() {
  const bool reset = random_.below(2) == 0;
  for (unsigned side = 0; side < 2; ++side) {
    if (reset) {
      require(change(side, QpState::reset), "qp {:#x} does not go to RESET", qp_[side]);
      continue;
    }
    const std::uint32_t was = qp_[side];
    host(side).engine.destroy_qp(stage_.now, was);
    make(side);
    require(qp_[side] != was, "qp {:#x}: its number comes at once again", was);
  }
  ++life_;
  join();
}

void TroubledPair::bind(unsigned side) {
  transport::WindowBind bind;
  bind.key = (window_[side] & ~0xFFU) | ((window_[side] + 1) & 0xFFU);
  bind.region = bindable_[side];
  bind.address = Host::kBase + base_;
  bind.length = kWindow;
  bind.access = transport::access::remote;
  require(host(side).engine.regions().bind(bind), "a window is not bound");
  stale_[side] = window_[side];
  window_[side] = bind.key;
}

void TroubledPair::step() {
  const auto side = static_cast<unsigned>(random_.below(2));
  const QpState is = state(side);
  if (is == QpState::sqd && (stage_.closing || random_.below(8) == 0)) change(side, QpState::rts);
  if (stage_.closing) return;
  const bool failed = state(0) == QpState::error || state(1) == QpState::error;
  if (random_.below(failed ? 32 : 2048) == 0) renew();
  switch (random_.below(512)) {
    case 0:
      change(side, QpState::error);
      break;
    case 1:
    case 2:
    case 3:
      if (is == QpState::rts) change(side, QpState::sqd);
      break;
    case 4:
    case 5:
      bind(side);
      break;
    default:
      break;
  }
}

}  // namespace paceline::soak
