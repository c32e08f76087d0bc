// Keeps RUN/report.html up to date while a run trains.
#pragma once

#include <functional>
#include <string>

#include "heddle/train/trainer.h"

namespace heddle::cli {

/// A RunOptions::on_event that writes the report after validations and at the end, and otherwise at
/// most twice a minute. A report that cannot be written is one warning; training goes on.
std::function<void(train::RunEvent)> report_writer(const std::string& run);

}  // namespace heddle::cli
