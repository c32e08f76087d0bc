// When gradients are said to be final: behind the last step that adds to them, each once.
#include "heddle/autograd/final_gradients.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "heddle/ops/elementwise.h"
#include "heddle/ops/reduce.h"
#include "tests/base/temporary.h"

namespace heddle {
namespace {

using Floats = std::vector<float>;

struct Variable {
  Leaf leaf;
  Tensor x;
  explicit Variable(const std::string& name, float value) : leaf{.name = name, .grad = {}} {
    x = Tensor::full({1, 2}, value).with_leaf(&leaf);
  }
  /// As Parameter::in() does.
  Tensor in() {
    UsedLeaves::note(leaf);
    return x;
  }
};

// What was said to be final, in order, with the gradient that it had then.
struct Heard {
  std::vector<std::string> names;
  std::vector<Floats> gradients;
};

class Asking {
 public:
  explicit Asking(std::vector<Variable*> all)
      : all_(std::move(all)), final_(places(), [this](size_t i) {
          heard.names.push_back(all_[i]->leaf.name);
          const Tensor& grad = all_[i]->leaf.grad;
          heard.gradients.push_back(grad.defined() ? grad.to_floats() : Floats());
        }) {}
  Heard heard;

 private:
  std::vector<const Tensor*> places() {
    std::vector<const Tensor*> places;
    for (Variable* v : all_) places.push_back(&v->leaf.grad);
    return places;
  }
  std::vector<Variable*> all_;
  FinalGradients final_;
};

// a is used last in the forward pass, and so is final first; b is used at both ends.
TEST(FinalGradients, come_behind_the_last_use_of_each_leaf_with_what_stays) {
  Variable a("a", 2), b("b", 3), c("c", 5), unused("unused", 7);
  Asking asking({&a, &b, &c, &unused});
  const Tensor y = mul(mul(mul(b.x, c.x), b.x), a.x);  // a b^2 c
  backward(sum(y));
  EXPECT_EQ(asking.heard.names, (std::vector<std::string>{"unused", "a", "b", "c"}));
  EXPECT_EQ(asking.heard.gradients[0], Floats{});
  for (const auto& [i, v] : {std::pair{1, &a}, {2, &b}, {3, &c}}) {
    EXPECT_EQ(asking.heard.gradients[static_cast<size_t>(i)], v->leaf.grad.to_floats());
  }
  EXPECT_EQ(b.leaf.grad.to_floats(), (Floats{60, 60}));
}

// A step that nothing leads to is passed over, and so is its leaf.
TEST(FinalGradients, of_a_branch_without_a_gradient_are_final_too) {
  Variable a("a", 2), b("b", 3);
  Asking asking({&a, &b});
  const Tensor y = scale(a.x, 2);
  mul(b.x, y);
  backward(sum(y));
  EXPECT_EQ(asking.heard.names, (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(asking.heard.gradients[0], Floats{});
}

// shared is used outside too, before and behind what is computed again; hidden is a tensor that was
// made outside: nobody sees that it is used within. unused was not even handed out.
TEST(FinalGradients, of_what_is_computed_again_come_when_that_was_walked_back) {
  Variable shared("shared", 2), inner("inner", 3), hidden("hidden", 5), last("last", 7);
  Variable unused("unused", 9);
  Asking asking({&last, &inner, &hidden, &shared, &unused});
  const Tensor h = mul(shared.in(), shared.in());
  const Tensor made = hidden.in();
  const auto layer = [&](std::span<const Tensor> in) {
    return std::vector<Tensor>{mul(mul(mul(in[0], inner.in()), made), shared.in())};
  };
  const Tensor y = recompute(std::array{h}, layer)[0];
  backward(sum(mul(mul(y, last.in()), shared.in())));
  EXPECT_EQ(asking.heard.names,
            (std::vector<std::string>{"unused", "last", "inner", "shared", "hidden"}));
  // y = s^4 i h l: of s = 2, i = 3, h = 5, l = 7
  EXPECT_EQ(asking.heard.gradients[1], (Floats{16 * 15, 16 * 15}));
  EXPECT_EQ(asking.heard.gradients[2], (Floats{16 * 35, 16 * 35}));
  EXPECT_EQ(asking.heard.gradients[3], (Floats{32 * 105, 32 * 105}));
  EXPECT_EQ(asking.heard.gradients[4], (Floats{16 * 21, 16 * 21}));
}

TEST(FinalGradients, of_two_steps_that_are_computed_again_end_with_the_first) {
  Variable both("both", 2), upper("upper", 3);
  Asking asking({&both, &upper});
  Tensor x = scale(both.in(), 1);
  x = recompute(std::array{x}, [&](std::span<const Tensor> in) {
    return std::vector<Tensor>{mul(in[0], both.in())};
  })[0];
  x = recompute(std::array{x}, [&](std::span<const Tensor> in) {
    return std::vector<Tensor>{mul(mul(in[0], both.in()), upper.in())};
  })[0];
  backward(sum(x));
  EXPECT_EQ(asking.heard.names, (std::vector<std::string>{"upper", "both"}));
  EXPECT_EQ(asking.heard.gradients[1], (Floats{36, 36}));
}

TEST(FinalGradients, a_second_pass_to_them_is_an_error) {
  Variable a("a", 2);
  Asking asking({&a});
  backward(sum(scale(a.x, 2)));
  expect_error(ErrorKind::internal, {"'a' came behind"}, [&] { backward(sum(scale(a.x, 2))); });
}

TEST(FinalGradients, nobody_asks_when_it_is_gone) {
  Variable a("a", 2);
  { const Asking asking({&a}); }
  backward(sum(scale(a.x, 2)));
  backward(sum(scale(a.x, 2)));
  EXPECT_EQ(a.leaf.grad.to_floats(), (Floats{4, 4}));
  EXPECT_EQ(FinalGradients::current(), nullptr);
}

}  // namespace
}  // namespace heddle
