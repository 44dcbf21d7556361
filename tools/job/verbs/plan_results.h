// What the ranks of a job report: takes their records, and notices when no rank makes progress.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/driver/traffic/message_app.h"
#include "tools/collective/rank/plan/plan_part.h"
#include "tools/collective/rank_listener.h"

namespace paceline::tools {

// How a rank and a message are called in what people read.
struct PlanNames {
  std::function<std::string(std::uint32_t nic)> rank;
  std::function<std::string(std::uint32_t message)> message;
};

struct DataTotals {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::uint64_t wrong_messages = 0;
  std::uint64_t wrong_bytes = 0;
};

class PlanResults final : public RankListener {
 public:
  // `messages`: of the plan.
  PlanResults(std::vector<rank::PlanPart> parts, std::size_t messages, PlanNames names,
              double patience);

  void greet(std::uint32_t rank, rank::JsonLines& lines) override;
  void take(std::uint32_t nic, const nlohmann::json& message) override;
  bool complete(std::uint32_t rank) const override;
  std::vector<std::string> obstacles() override;

  // Which rank waits for what, among those that have told since their last progress.
  std::vector<std::string> waits() const;
  bool stalled() const { return stalled_; }
  double share_done() const;

  // By message, of a job that has ended.
  const std::vector<MessageRecord>& records() const { return records_; }
  const std::vector<std::uint32_t>& causes() const { return causes_; }
  const DataTotals& totals() const { return totals_; }  // of what has arrived
  const std::vector<std::string>& wrong() const { return wrong_; }

 private:
  struct Rank {
    std::uint64_t planned = 0;  // messages that it sends, and times of computing
    std::uint64_t events = 0;   // with its arrivals
    std::uint64_t finished = 0;
    std::uint64_t recorded = 0;
    bool told_totals = false;
    std::optional<std::string> waits;
  };

  void take_progress(Rank& rank, std::uint32_t nic, const nlohmann::json& message);
  void take_records(Rank& rank, const nlohmann::json& rows);
  void take_totals(Rank& rank, std::uint32_t nic, const nlohmann::json& totals);

  std::vector<rank::PlanPart> parts_;
  std::vector<Rank> ranks_;
  PlanNames names_;
  double patience_;
  double last_progress_;
  bool stalled_ = false;
  std::vector<std::string> deaf_;  // errors: ranks that do not read their messages
  std::vector<MessageRecord> records_;
  std::vector<std::uint32_t> causes_;
  DataTotals totals_;
  std::vector<std::string> wrong_;
};

}  // namespace paceline::tools
