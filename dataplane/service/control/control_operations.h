// Carries requests of the control protocol out and writes their answers. Knows no socket: a request
// is a text, an answer a text and perhaps a descriptor. For the control thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "dataplane/attach/shared_memory.h"
#include "dataplane/service/congestion/congestion_controller.h"
#include "dataplane/service/control/capture_controller.h"
#include "dataplane/service/control/probe_controller.h"
#include "dataplane/service/protocol/control_request.h"
#include "dataplane/service/workers/service.h"

namespace paceline::service {

struct ControlAnswer {
  std::string text;             // at most kMostControlBytes
  int descriptor = -1;          // owned by the part that answers, or by `memory`
  int second_descriptor = -1;   // sent with the first
  attach::SharedMemory memory;  // holds a text that was too long for a message
};

// What operators may do to the sessions of programs.
struct SessionOperations {
  std::function<std::string()> status;  // the text that programs get for the same question
  std::function<void(NicPlace)> take_away;
};

class ControlOperations {
 public:
  // All arguments outlive this.
  ControlOperations(Service& service, CongestionController& controller, std::string attach_socket,
                    SessionOperations sessions)
      : service_(service),
        congestion_(controller),
        attach_socket_(std::move(attach_socket)),
        sessions_(std::move(sessions)),
        captures_(service),
        probes_(service) {}

  // `client`: the connection that asks, if it can end.
  ControlAnswer answer(std::string_view text, const ControlClient& client = {});
  // The client's connection has ended: ends its captures and probes.
  void gone(const ControlClient& client) {
    captures_.end_all_of(client);
    probes_.end_all_of(client);
  }
  // The answer to a client without rights.
  static std::string refuse(const std::string& why);

 private:
  std::vector<std::string> take_away(const std::vector<std::string>& names);
  std::vector<std::string> inject(const std::vector<config::LinkFault>& faults, std::size_t& links);
  std::string plan(const config::LinkFault& fault, std::vector<fabric::LinkEvent>& out);

  Service& service_;
  CongestionController& congestion_;
  std::string attach_socket_;
  SessionOperations sessions_;
  CaptureController captures_;
  ProbeController probes_;
};

}  // namespace paceline::service
