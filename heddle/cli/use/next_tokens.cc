// A table, or JSON.
#include "heddle/cli/use/next_tokens.h"

#include <cmath>

#include "heddle/base/json/json.h"
#include "heddle/infer/words.h"

namespace heddle::cli {
namespace {

double probability(const NextToken& token) { return std::exp(static_cast<double>(token.log_p)); }

std::string text_of(const NextToken& token, const std::optional<Tokenizer>& tokenizer) {
  return tokenizer ? token_text(*tokenizer, token.id) : "";
}

}  // namespace

std::string next_tokens_table(std::span<const NextToken> tokens,
                              const std::optional<Tokenizer>& tokenizer) {
  std::string table = fmt::format("{:20} {:>8} {:>12}\n", "token", "id", "p");
  for (const NextToken& token : tokens) {
    table += fmt::format("{:20} {:>8} {:>12.6f}\n", Json(text_of(token, tokenizer)).dump(),
                         token.id, probability(token));
  }
  return table;
}

std::string next_tokens_json(int64_t prompt, std::span<const NextToken> tokens,
                             const std::optional<Tokenizer>& tokenizer, const std::string& error) {
  Json::Array rows;
  for (const NextToken& token : tokens) {
    rows.push_back(Json::object({{"token", tokenizer ? tokenizer->token(token.id) : ""},
                                 {"text", text_of(token, tokenizer)},
                                 {"id", token.id},
                                 {"probability", probability(token)},
                                 {"log_prob", token.log_p}}));
  }
  Json json = Json::object({{"prompt", prompt}, {"top", Json(std::move(rows))}});
  if (!error.empty()) json["error"] = error;
  return json.dump();
}

}  // namespace heddle::cli
