// The cheapest pairing against all pairings.
#include "heddle/base/assignment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "tests/base/temporary.h"

namespace heddle {
namespace {

double cost_of(const std::vector<int64_t>& pairs, const std::vector<double>& costs,
               int64_t columns) {
  double sum = 0;
  for (size_t row = 0; row < pairs.size(); ++row) {
    if (pairs[row] >= 0) sum += costs[row * static_cast<size_t>(columns) + pairs[row]];
  }
  return sum;
}

// Of all orders of max(rows, columns) places.
double least_cost(const std::vector<double>& costs, int64_t rows, int64_t columns) {
  std::vector<int64_t> order(static_cast<size_t>(std::max(rows, columns)));
  std::iota(order.begin(), order.end(), 0);
  double least = std::numeric_limits<double>::infinity();
  do {
    double sum = 0;
    for (int64_t i = 0; i < std::min(rows, columns); ++i) {
      sum += rows <= columns ? costs[i * columns + order[i]] : costs[order[i] * columns + i];
    }
    least = std::min(least, sum);
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

void expect_pairs_once(const std::vector<int64_t>& pairs, int64_t columns) {
  std::vector<int64_t> used;
  std::ranges::copy_if(pairs, std::back_inserter(used), [](int64_t c) { return c >= 0; });
  EXPECT_EQ(std::ssize(used), std::min(std::ssize(pairs), columns));
  std::ranges::sort(used);
  EXPECT_TRUE(std::ranges::adjacent_find(used) == used.end());
  EXPECT_TRUE(used.empty() || used.back() < columns);
}

TEST(Assignment, is_the_cheapest_of_all) {
  std::mt19937 random(1);
  for (int64_t rows = 0; rows <= 7; ++rows) {
    for (int64_t columns = 0; columns <= 7; ++columns) {
      for (const bool has_ties : {false, true}) {
        for (int trial = 0; trial < (rows * columns > 36 ? 3 : 10); ++trial) {
          std::vector<double> costs(static_cast<size_t>(rows * columns));
          for (double& c : costs) {
            c = has_ties ? static_cast<double>(random() % 4) - 2
                         : std::normal_distribution<double>()(random);
          }
          const std::vector<int64_t> pairs = cheapest_pairs(costs, rows, columns);
          expect_pairs_once(pairs, columns);
          if (rows > 0 && columns > 0) {
            ASSERT_NEAR(cost_of(pairs, costs, columns), least_cost(costs, rows, columns), 1e-12)
                << rows << " x " << columns;
          }
        }
      }
    }
  }
}

TEST(Assignment, of_equal_costs_takes_columns_in_order) {
  EXPECT_EQ(cheapest_pairs(std::vector<double>(12, 0.5), 3, 4), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(cheapest_pairs(std::vector<double>(12, 0.5), 4, 3),
            (std::vector<int64_t>{0, 1, 2, -1}));
}

TEST(Assignment, large_ones_leave_no_cheaper_swap) {
  std::mt19937 random(2);
  constexpr int64_t rows = 100, columns = 63;
  std::vector<double> costs(rows * columns);
  for (double& c : costs) c = std::uniform_real_distribution<double>(-5, 5)(random);
  const std::vector<int64_t> pairs = cheapest_pairs(costs, rows, columns);
  expect_pairs_once(pairs, columns);
  const auto cost = [&](int64_t row, int64_t column) {
    return column < 0 ? 0 : costs[row * columns + column];
  };
  for (int64_t a = 0; a < rows; ++a) {
    for (int64_t b = 0; b < a; ++b) {
      EXPECT_LE(cost(a, pairs[a]) + cost(b, pairs[b]),
                cost(a, pairs[b]) + cost(b, pairs[a]) + 1e-12);
    }
  }
}

TEST(Assignment, costs_that_are_no_numbers_are_named) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  expect_error(ErrorKind::data, {"row 1 and column 0 is nan"}, [&] {
    cheapest_pairs(std::vector<double>{1, 2, 3, nan, 5, 6}, 2, 3);
  });
  expect_error(ErrorKind::data, {"row 1 and column 0 is -inf"}, [] {
    cheapest_pairs(std::vector<double>{1, -INFINITY}, 2, 1);
  });
  expect_error(ErrorKind::shape, {"2 x 1"}, [] { cheapest_pairs(std::vector<double>{1}, 2, 1); });
}

}  // namespace
}  // namespace heddle
