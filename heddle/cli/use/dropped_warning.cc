// One warning at the first such text, one at the end.
#include "heddle/cli/use/dropped_warning.h"

#include "heddle/base/error.h"
#include "heddle/base/log.h"

namespace heddle::cli {

void warn_of_dropped(const DroppedCharacters& dropped, const std::string& path,
                     const char* result) {
  if (dropped.count() == 0) return;
  log_warning("{}: the vocabulary lacks {}, which the model does not see; {}: {}", path,
              dropped.counted_characters(), result, dropped.examples());
}

void warn_of_dropped_input(const char* command, const DroppedCharacters& dropped) {
  if (dropped.count() == 0) return;
  log_warning("{}: left out: {} of the input that the vocabulary lacks: {}", command,
              dropped.counted_characters(), dropped.examples());
}

void DroppedWarning::look_at(const std::string& text, const std::string& where) {
  const int64_t before = dropped_.count();
  const std::string rest = dropped_.without(text);
  if (dropped_.count() == before) return;
  if (before == 0 && !rest.empty()) {
    said_ = dropped_.count();
    log_warning("{}: {}: the vocabulary lacks {}, which the model does not see: {}", command_,
                where, dropped_.counted_characters(), dropped_.examples());
  }
  check(!rest.empty(), ErrorKind::data,
        "{}: the vocabulary has none of its characters, so nothing is left of it: {}", where,
        dropped_.examples());
}

void DroppedWarning::report() const {
  if (dropped_.count() == said_) return;
  log_warning("{}: in all, the vocabulary lacks {} of the input: {}", command_,
              dropped_.counted_characters(), dropped_.examples());
}

}  // namespace heddle::cli
