#include "dataplane/service/sessions/cm_requests.h"

#include <fmt/format.h>

#include "dataplane/attach/text.h"
#include "dataplane/service/sessions/refusals.h"

namespace paceline::service {

CmRequests::~CmRequests() {
  if (opened_) service_.close_channels(state_.number);
}

Status CmRequests::open(const attach::Message& request) {
  if (opened_) return {EPROTO, "rdma_cm is open"};
  const std::string name = attach::text_of(request.as<attach::OpenRequest>().nic);
  if (!name.empty()) {
    for (std::size_t i = 0; i < service_.nics().size(); ++i) {
      if (attach::text_of(service_.nics().nic(i).name) == name) seen_ = i;
    }
    if (!seen_) return {ENODEV, fmt::format("there is no NIC '{}'", name)};
  }
  opened_ = true;
  return {};
}

Status CmRequests::channel(Reply& reply) {
  std::uint32_t channel = 0;
  int programs_end = -1;
  if (const int error = service_.open_channel(state_.number, seen_, state_.tenant.descriptors,
                                              channel, programs_end);
      error != 0) {
    return {error, "a channel of rdma_cm"};
  }
  reply.descriptors = {programs_end};
  reply.put(attach::HandleBody{channel, 0});
  return {};
}

Status CmRequests::command(const attach::Message& request, Reply& reply) {
  const auto r = request.as<attach::CmRequest>();
  const auto bytes = request.beyond<attach::CmRequest>();
  if (r.body_bytes > attach::kMaxCmBytes || r.option_bytes > attach::kMaxCmBytes ||
      bytes.size() != std::size_t{r.body_bytes} + r.option_bytes) {
    return {EPROTO, "the bytes of a command are not as many as it says"};
  }
  cm::UcmRequest command;
  command.channel = r.channel;
  command.command = r.command;
  command.body = bytes.first(r.body_bytes);
  command.option = bytes.subspan(r.body_bytes);
  command.room = std::min<std::size_t>(r.room, attach::kMaxCmBytes);
  command.other_channel = r.other_channel;
  const cm::CmService::Ran ran = service_.run(state_.number, command);
  attach::CmReply answer;
  answer.error = ran.result.error;
  answer.drained = ran.drained ? 1 : 0;
  answer.other_drained = ran.other_drained ? 1 : 0;
  reply.put(answer);
  reply.body.insert(reply.body.end(), ran.result.response.begin(), ran.result.response.end());
  return {};
}

}  // namespace paceline::service
