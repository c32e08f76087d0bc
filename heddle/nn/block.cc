// The two placements of the norm in a residual stream, and layers that are computed again.
#include "heddle/nn/block.h"

#include "heddle/ops/embedding.h"

namespace heddle::nn {

Tensor Residual::enter(const LayerNorm& norm) {
  if (!is_pre_) return x_;
  if (!pending_.defined()) return norm(x_);
  AddNorm both = norm.add(x_, pending_, spec_);
  x_ = both.sum;
  pending_ = {};
  return both.norm;
}

void Residual::leave(const Tensor& sub, const DropoutSpec& spec, const LayerNorm& norm) {
  if (is_pre_) {
    x_ = value();
    pending_ = sub;
    spec_ = spec;
  } else {
    x_ = norm.add(x_, sub, spec).norm;
  }
}

void Residual::leave(const Tensor& sub, const DropoutSpec& spec, const DropoutSpec& past,
                     const LayerNorm& norm) {
  if (past.p <= 0) return leave(sub, spec, norm);
  leave(dropout(sub, spec), past, norm);
}

void Residual::keep_rows(std::span<const int32_t> rows) {
  check(!pending_.defined(), ErrorKind::internal, "rows of a sum that is put off");
  x_ = gather_rows(x_, rows);
}

Tensor Residual::value() {
  if (pending_.defined()) {
    x_ = dropout_add(x_, pending_, spec_);
    pending_ = {};
  }
  return x_;
}

void Residual::pass_recomputed(const Layer& layer, std::span<const Tensor> outside,
                               std::vector<Tensor>* left) {
  std::vector<Tensor> inputs = {x_};
  const bool was_put_off = pending_.defined();
  if (was_put_off) inputs.push_back(pending_);
  inputs.insert(inputs.end(), outside.begin(), outside.end());
  struct PutOff {
    DropoutSpec spec;
    bool is_there = false;
  };
  const auto put_off = std::make_shared<PutOff>();  // by the layer
  const auto outputs =
      heddle::recompute(inputs, [layer, was_put_off, before = spec_, is_pre = is_pre_, put_off,
                                 left](std::span<const Tensor> in) {
        Residual x(in[0], is_pre);
        x.spec_ = before;
        if (was_put_off) x.pending_ = in[1];
        const size_t others = left == nullptr ? 0 : left->size();
        layer(x, in.subspan(was_put_off ? 2 : 1));
        *put_off = {x.spec_, x.pending_.defined()};
        std::vector<Tensor> out = {x.x_};
        if (put_off->is_there) out.push_back(x.pending_);
        if (left != nullptr) {  // an output of all that is computed again, both times
          out.insert(out.end(), left->begin() + static_cast<int64_t>(others), left->end());
          left->resize(others);
        }
        return out;
      });
  x_ = outputs[0];
  pending_ = put_off->is_there ? outputs[1] : Tensor();
  spec_ = put_off->spec;
  if (left != nullptr) {
    left->insert(left->end(), outputs.begin() + (put_off->is_there ? 2 : 1), outputs.end());
  }
}

void observe(const Run& run, const std::string& name, Residual& x) {
  if (run.observer != nullptr && run.observer->hidden) run.observer->hidden(name, x.value());
}

Tensor run_blocks(const std::string& prefix, Residual x, const std::vector<Block>& blocks,
                  const LayerNorm* last, const TokenRows& tokens, const Run& run) {
  return run_stack(prefix, std::move(x), blocks.size(), last, run,
                   [&blocks, tokens, run](size_t i, Residual& y, auto) {
                     TokenRows of_block =
                         tokens;  // the keys of the next block are those of all tokens
                     if (i + 1 < blocks.size()) of_block.answers = {};
                     blocks[i](y, of_block, run);
                   });
}

}  // namespace heddle::nn
