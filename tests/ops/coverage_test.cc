// Every op that training a Transformer records has a case.
#include <gtest/gtest.h>

#include <set>

#include "heddle/models/transformer.h"
#include "heddle/ops/loss.h"
#include "tests/support/op_case.h"

namespace heddle {
namespace {

std::vector<std::string> tape_of_training_step(bool is_pre, const std::string& positions) {
  TransformerConfig c;
  c.vocab_size = 20, c.d_model = 16, c.encoder_layers = c.decoder_layers = 2;
  c.encoder_attention_heads = c.decoder_attention_heads = 2;
  c.encoder_ffn_dim = c.decoder_ffn_dim = 32;
  c.normalize_before = is_pre, c.normalize_embedding = true, c.output_bias = true;
  c.position_embedding_type = positions;
  c.attention_dropout = c.activation_dropout = 0.1;
  nn::Parameters parameters(1);
  const Transformer model(nn::Scope(parameters), c);
  const std::vector<int32_t> words = {5, 6, 7, 3, 8, 3};
  const Segments two = Segments::from_lengths(std::vector<int64_t>{4, 2});
  const auto rows = std::make_shared<const RowIds>(RowIds{{0, 0, 0, 0, 1, 1}, {0, 1, 2, 3, 0, 1}});
  const nn::Run run{.training = true};
  const Tensor memory = model.encode({words, &two, rows}, run);
  const Tensor h = model.decode({words, &two, rows}, memory, two, run);
  linear_cross_entropy(h, model.output_weight(run), model.output_bias(), words, {});
  const std::vector<std::string> names = tape_names();
  clear_tape();
  return names;
}

TEST(OpCoverage, every_op_of_a_training_step_has_a_case) {
  std::set<std::string> known;
  for (const OpCase& c : op_cases()) known.insert(c.op);
  for (bool is_pre : {false, true}) {
    for (const char* positions : {"sinusoidal", "learned"}) {
      const auto names = tape_of_training_step(is_pre, positions);
      EXPECT_GT(names.size(), 20u);
      for (const std::string& name : names) {
        EXPECT_TRUE(known.contains(name)) << "op '" << name << "' has no case in tests/ops";
      }
    }
  }
}

}  // namespace
}  // namespace heddle
