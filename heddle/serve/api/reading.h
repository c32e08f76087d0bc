// Texts of a request that are read some at a time, between the steps of others.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "heddle/infer/answers.h"
#include "heddle/serve/api/exchange.h"

namespace heddle::serve {

struct Reading {
  SharedExchange exchange;
  std::vector<TextToClassify> texts;  ///< or pairs
  /// Takes some of them, one pass; cut: raised by those that are too long, which are refused.
  std::function<void(std::span<const TextToClassify>, int64_t& cut)> read;
  std::function<void()> on_done;  ///< once all are read
};

/// Takes room for the texts and reads them on an engine's thread, as work_between_steps() does.
void start_reading(Reading reading);

}  // namespace heddle::serve
