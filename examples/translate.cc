// Loads a model directory (or a training run) and translates standard input, a line at a time.
// usage: translate MODEL < source > target
#include <string>

#include "heddle/base/files/lines.h"
#include "heddle/infer/decoding/translate.h"
#include "heddle/infer/loading/loaded_model.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: translate MODEL < source > target\n");
    return 2;
  }
  try {
    const heddle::LoadedModel model = heddle::load_translation_model(argv[1]);
    const heddle::TranslateOptions options{.search = {.beam = 5},
                                           .precision = heddle::resolve_precision("auto")};
    heddle::LineReader input("-");  // with or without '\r' before the '\n'
    for (std::string line; input.next(line);) {
      const auto result = heddle::translate_lines(model, {&line, 1}, options, input.line_number());
      fmt::print("{}\n", result[0].text);
    }
  } catch (const heddle::Error& error) {
    fmt::print(stderr, "translate: {}\n", error.what());
    return error.exit_code();
  }
}
