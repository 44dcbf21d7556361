// Log messages contain names that programs chose and reasons that users wrote. So control
// characters in messages are escaped before they reach the terminal or the system's journal.
#pragma once

#include <spdlog/pattern_formatter.h>
#include <spdlog/spdlog.h>

#include <ctime>
#include <memory>
#include <string>
#include <string_view>

#include "dataplane/base/text/printable.h"

namespace paceline::attach {

class PrintableMessage : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    const std::string text =
        printable(std::string_view(message.payload.data(), message.payload.size()));
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override {
    return std::make_unique<PrintableMessage>();
  }
};

// For the default logger; call it first in main().
inline void log_printable_text() {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<PrintableMessage>('*').set_pattern("[%Y-%m-%d %H:%M:%S.%e] [%^%l%$] %*");
  spdlog::set_formatter(std::move(formatter));
}

}  // namespace paceline::attach
