#include "control/tuner/online/tuner_state.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "dataplane/base/text/json_limits.h"

// One visit(...) per type names its fields once, for writing and reading alike.
namespace paceline::tuner::online {

namespace {

using Json = nlohmann::json;
constexpr int kSchema = 1;

class Writer {
 public:
  explicit Writer(Json& out) : out_(out) {}
  template <class T>
  void operator()(const char* name, const T& value) const;
  template <class T>
  void later(const char* name, const T& value) const {
    (*this)(name, value);
  }

 private:
  Json& out_;
};

class Reader {
 public:
  explicit Reader(const Json& in) : in_(in) {}
  template <class T>
  void operator()(const char* name, T& value) const;
  // States of earlier versions do not have it.
  template <class T>
  void later(const char* name, T& value) const {
    if (in_.contains(name)) (*this)(name, value);
  }

 private:
  const Json& in_;
};

template <class F, class T>
void visit(const F& field,
           T& m) requires std::is_same_v<std::remove_const_t<T>, telemetry::MessageFigures> {
  field("begun", m.begun);
  field("completed", m.completed);
  field("failed", m.failed);
  field("crossed", m.crossed);
  field("begun_bytes", m.begun_bytes);
  field("completed_bytes", m.completed_bytes);
  field("fct_ns", m.fct_ns);
  field("log2_slowdown", m.log2_slowdown);
  field("slowdown", m.slowdown);
}

template <class F, class T>
void visit(const F& field, T& w) requires std::is_same_v<std::remove_const_t<T>, Window> {
  field("begin_ns", w.begin_ns);
  field("end_ns", w.end_ns);
  field("order", w.order);
  field("messages", w.messages);
  field("line_bps", w.line_bps);
  field("tx_bytes", w.tx_bytes);
  field("rx_bytes", w.rx_bytes);
  field("tx_packets", w.tx_packets);
  field("rx_packets", w.rx_packets);
  field("ce_packets", w.ce_packets);
  field("cnps_received", w.cnps_received);
  field("retransmitted", w.retransmitted);
  field("dropped", w.dropped);
  field("paused_ns", w.paused_ns);
  field("senders", w.senders);
  field("cycles", w.cycles);
  field("cycle_packets", w.cycle_packets);
  field("delay_p99_ns", w.delay_p99_ns);
  field("queue_p99_bytes", w.queue_p99_bytes);
  field("jain", w.jain);
  field("cpu_share", w.cpu_share);
  field("phase_ratio", w.phase_ratio);
  field("limiter_ns", w.limiter_ns);
}

template <class F, class T>
void visit(const F& field, T& s) requires std::is_same_v<std::remove_const_t<T>, Signature> {
  field("load", s.load);
  field("degree", s.degree);
  field("bytes", s.bytes);
  field("core_marks", s.core_marks);
  field.later("link_gbps", s.link_gbps);
}

template <class F, class T>
void visit(const F& field,
           T& s) requires std::is_same_v<std::remove_const_t<T>, SignatureBuilder::State> {
  field("windows", s.windows);
  field("sizes", s.mix.sizes);
  field("degrees", s.mix.degrees);
  field("bytes", s.bytes);
  field("tx_bytes", s.tx_bytes);
  field("rx_bytes", s.rx_bytes);
  field("quiet_packets", s.quiet_packets);
  field("quiet_marks", s.quiet_marks);
  field("span_ns", s.span_ns);
  field("line_bps", s.line_bps);
}

template <class F, class T>
void visit(const F& field,
           T& s) requires std::is_same_v<std::remove_const_t<T>, ChangeDetector::State> {
  field("reference", s.reference);
  field("current", s.current);
  field("suspected", s.suspected);
}

template <class F, class T>
void visit(const F& field, T& t) requires std::is_same_v<std::remove_const_t<T>, PairedTest> {
  field("n", t.n);
  field("mean", t.mean);
  field("squares", t.squares);
  field("incumbent_breaches", t.incumbent_breaches);
}

template <class F, class T>
void visit(const F& field, T& a) requires std::is_same_v<std::remove_const_t<T>, BanditArm> {
  field("name", a.name);
  field("values", a.values);
  field("prior_mean", a.prior_mean);
  field("prior_sd", a.prior_sd);
  field("weight", a.weight);
  field("sum", a.sum);
  field("test", a.test);
  field("out", a.out);
}

template <class F, class T>
void visit(const F& field, T& m) requires std::is_same_v<std::remove_const_t<T>, ClimbMove> {
  field("param", m.param);
  field("up", m.up);
  field("from", m.from);
  field("to", m.to);
}

template <class F, class T>
void visit(const F& field, T& c) requires std::is_same_v<std::remove_const_t<T>, ClimbState> {
  field("anchor", c.anchor);
  field("anchor_at_ns", c.anchor_at_ns);
  field("tried", c.tried);
  field("next", c.next);
}

template <class F, class T>
void visit(const F& field, T& t) requires std::is_same_v<std::remove_const_t<T>, Trial> {
  field("preset", t.preset);
  field("arm", t.arm);
  field("name", t.name);
  field("values", t.values);
}

template <class F, class T>
void visit(const F& field, T& c) requires std::is_same_v<std::remove_const_t<T>, Context> {
  field("signature", c.signature);
  field("incumbent", c.incumbent);
  field("incumbent_name", c.incumbent_name);
  field("arms", c.bandit.arms());
  field("climb", c.climb);
  field("move", c.move);
  field("test", c.test);
  field("last_used", c.last_used);
  field("complained", c.complained);
}

template <class F, class T>
void visit(const F& field, T& s) requires std::is_same_v<std::remove_const_t<T>, TunerState> {
  field("mode", s.mode);
  field("random", s.random);
  field("champion", s.champion);
  field("order", s.order);
  field("role", s.role);
  field("in_force", s.in_force);
  field("waiting", s.waiting);
  field("refusals", s.refusals);
  field("washed", s.washed);
  field("freeze", s.freeze);
  field("fresh", s.fresh);
  field("learning", s.learning);
  field("learning_context", s.learning_context);
  field("builder", s.builder);
  field("detector", s.detector);
  field("watched", s.watched);
  field("block", s.block);
  field("block_windows", s.block_windows);
  field("block_breached", s.block_breached);
  field("cool", s.cool);
  field("resting", s.resting);
  field("trial", s.trial);
  field("candidate_first", s.candidate_first);
  field("second_half", s.second_half);
  field("first_half", s.first_half);
  field("incumbent_breached", s.incumbent_breached);
  field("empty_pairs", s.empty_pairs);
  field("blocks", s.blocks);
  field("pairs", s.pairs);
  field("accepted", s.accepted);
  field("credit", s.credit);
  field("context", s.context);
  field("contexts", s.contexts);
}

template <class T>
concept Plain = std::is_arithmetic_v<T> || std::is_same_v<T, std::string>;

// Writes a value, by its kind.
template <class T>
Json written(const T& value) {
  if constexpr (Plain<T>) {
    return value;
  } else if constexpr (std::is_enum_v<T>) {
    return static_cast<unsigned>(value);
  } else if constexpr (std::is_same_v<T, SignatureBuilder>) {
    return written(value.state());
  } else if constexpr (requires { value.has_value(); }) {
    return value ? written(*value) : Json();
  } else if constexpr (requires { typename T::mapped_type; }) {
    Json out = Json::object();
    for (const auto& [key, item] : value) out[key] = written(item);
    return out;
  } else if constexpr (requires { value.begin(); }) {
    Json out = Json::array();
    for (const auto& item : value) out.push_back(written(item));
    return out;
  } else {
    Json out = Json::object();
    visit(Writer(out), value);
    return out;
  }
}

// The reverse; throws nlohmann::json::exception or std::out_of_range where it does not fit.
template <class T>
void read(const Json& in, T& value) {
  if constexpr (Plain<T>) {
    in.get_to(value);
  } else if constexpr (std::is_enum_v<T>) {
    value = static_cast<T>(in.get<unsigned>());
  } else if constexpr (std::is_same_v<T, SignatureBuilder>) {
    SignatureBuilder::State state;
    read(in, state);
    value = SignatureBuilder(state);
  } else if constexpr (requires { value.has_value(); }) {
    value.reset();
    if (!in.is_null()) read(in, value.emplace());
  } else if constexpr (requires { typename T::mapped_type; }) {
    value.clear();
    for (const auto& [key, item] : in.get_ref<const Json::object_t&>()) read(item, value[key]);
  } else if constexpr (requires { value.resize(0); }) {
    value.clear();
    for (const Json& item : in.get_ref<const Json::array_t&>()) read(item, value.emplace_back());
  } else if constexpr (requires { value.begin(); }) {
    if (in.size() != value.size()) throw std::out_of_range("an array of another length");
    for (std::size_t i = 0; i < value.size(); ++i) read(in.at(i), value[i]);
  } else {
    visit(Reader(in), value);
  }
}

template <class T>
void Writer::operator()(const char* name, const T& value) const {
  out_[name] = written(value);
}

template <class T>
void Reader::operator()(const char* name, T& value) const {
  read(in_.at(name), value);
}

// Checks beyond types. Returns an error, or an empty text.
std::string inconsistency(const TunerState& state, const cc::AlgorithmInfo& info) {
  const std::size_t n = info.params.size();
  if (state.champion.size() != n || state.in_force.size() != n) return "parameters are missing";
  if (state.mode > Mode::automatic || state.role > Role::candidate ||
      state.freeze > Freeze::killed) {
    return "a number that stands for nothing";
  }
  if (!state.context.empty() && !state.contexts.contains(state.context)) {
    return "the context in use is missing";
  }
  if (state.trial && state.context.empty()) return "a trial without a context";
  for (const auto& [key, context] : state.contexts) {
    if (context.incumbent.size() != n) return "parameters are missing";
    if (context.move && context.move->param >= n) return "a move of an unknown parameter";
    for (const BanditArm& arm : context.bandit.arms()) {
      if (arm.values.size() != n || arm.prior_sd <= 0) return "an invalid preset";
    }
  }
  if (state.trial) {
    const Context& now = state.contexts.at(state.context);
    if (state.trial->values.size() != n ||
        (state.trial->preset ? state.trial->arm >= now.bandit.arms().size()
                             : !now.move.has_value())) {
      return "a trial of nothing";
    }
  }
  return "";
}

}  // namespace

std::string to_json(const TunerState& state, const cc::AlgorithmInfo& info) {
  Json out;
  out["schema"] = kSchema;
  out["algorithm"] = info.name;
  out["state"] = written(state);
  return out.dump();
}

std::vector<std::string> from_json(const std::string& text, const cc::AlgorithmInfo& info,
                                   const BanditOptions& bandit, TunerState& state) {
  if (const JsonExcess excess = json_excess(text)) {
    return {fmt::format("tuner state: {}", excess.what)};
  }
  const auto whole = std::make_unique<TunerState>();
  TunerState& fresh = *whole;
  try {
    const Json in = Json::parse(text);
    if (in.at("schema").get<int>() != kSchema) {
      return {
          fmt::format("tuner state: schema {}, allowed is {}", in.at("schema").dump(), kSchema)};
    }
    if (in.at("algorithm").get<std::string>() != info.name) {
      return {fmt::format("tuner state: of {}, but {} is in use",
                          in.at("algorithm").get<std::string>(), info.name)};
    }
    read(in.at("state"), fresh);
  } catch (const std::exception& error) {
    return {fmt::format("tuner state: {}", error.what())};
  }
  const std::string wrong = inconsistency(fresh, info);
  if (!wrong.empty()) return {"tuner state: " + wrong};
  for (auto& [key, context] : fresh.contexts) {
    context.bandit = Bandit(std::move(context.bandit.arms()), bandit);
  }
  state = std::move(fresh);
  return {};
}

}  // namespace paceline::tuner::online
