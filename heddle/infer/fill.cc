// Tokens for the masks of a text, by a model of masked tokens.
#include "heddle/infer/fill.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/files/mmap.h"
#include "heddle/infer/search/best_tokens.h"
#include "heddle/ops/embedding.h"
#include "heddle/text/strings/strings.h"

namespace heddle {
namespace {

constexpr std::string_view kMask = "[MASK]";

Encoding encode_masked(const LoadedModel& model, const std::string& text) {
  const int32_t mask = model.tokenizer->mask_id();
  int64_t cut = 0;
  Encoding encoding =
      encode_to_fit(model, replace_all(text, kMask, model.tokenizer->token(mask)), cut);
  check(cut == 0, ErrorKind::data,
        "fill: the text '{}...' is longer than the {} tokens that the model takes",
        text.substr(0, 60), model.max_length);
  check(std::ranges::count(encoding.ids, mask) > 0, ErrorKind::data,
        "fill: the text '{}' has no {}; write it where a token is wanted", text,
        model.tokenizer->token(mask));
  return encoding;
}

std::string without_outer_spaces(const std::string& text) {
  const size_t begin = text.find_first_not_of(' ');
  return begin == text.npos ? text : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

// The text of the ids without special tokens but masks, which are yet to be filled.
std::string text_with_masks(const Tokenizer& tokenizer, std::vector<int32_t> ids) {
  std::erase_if(ids,
                [&](int32_t id) { return tokenizer.is_special(id) && id != tokenizer.mask_id(); });
  return without_outer_spaces(tokenizer.decode(ids, {.skip_special = false}));
}

}  // namespace

std::vector<std::vector<std::vector<Fill>>> fill_masks(const LoadedModel& model,
                                                       std::span<const std::string> texts,
                                                       int64_t top, const Precision& precision) {
  check_mapped_files();
  const Heads& heads = model.model->heads();
  const int32_t mask = model.tokenizer->mask_id();
  check_head(model, heads.output.has_value(), Head::masked_token, "masked tokens");
  check(mask >= 0, ErrorKind::data, "{}: its tokenizer has no mask token", model.path);
  const int64_t vocab = model.tokens().vocab_size();
  check(top >= 1 && top <= vocab, ErrorKind::usage, "`top` is {}; it must be 1 to {}", top, vocab);
  std::vector<Encoding> encodings;
  for (const std::string& text : texts) encodings.push_back(encode_masked(model, text));
  const PackedTexts packed(model.tokens(), encodings);
  std::vector<int32_t> masks;
  for (size_t row = 0; row < packed.ids.size(); ++row) {
    if (packed.ids[row] == mask) masks.push_back(static_cast<int32_t>(row));
  }
  const NoGrad off;
  nn::Run run;
  run.use(precision);
  const Tensor h = model.tokens().hidden(packed.tokens(), run);
  const Tensor logits = heads.token_logits(gather_rows(h, masks), run);
  const std::vector<NextToken> best = best_tokens(logits, {.count = top});
  auto next = best.begin();
  std::vector<std::vector<std::vector<Fill>>> result;
  for (Encoding& encoding : encodings) {
    auto& of_text = result.emplace_back();
    for (int32_t& id : encoding.ids) {
      if (id != mask) continue;
      auto& fills = of_text.emplace_back();
      for (int64_t i = 0; i < top; ++i, ++next) {
        id = next->id;
        const bool is_known = id < model.tokenizer->vocab_size();  // a padded vocabulary has more
        const std::vector<int32_t> alone = {id};
        fills.push_back({id,
                         is_known ? without_outer_spaces(
                                        model.tokenizer->decode(alone, {.skip_special = false}))
                                  : "",
                         std::exp(static_cast<double>(next->log_p)),
                         is_known ? text_with_masks(*model.tokenizer, encoding.ids) : ""});
      }
      id = mask;
    }
  }
  return result;
}

}  // namespace heddle
