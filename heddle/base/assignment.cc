// Row after row joins by the shortest path that alternates between pairs and others; prices of rows
// and columns keep all costs less prices at 0 and above.
#include "heddle/base/assignment.h"

#include <cmath>
#include <limits>

#include "heddle/base/error.h"

namespace heddle {
namespace {

// Costs with no more rows than columns.
struct CostTable {
  std::span<const double> costs;
  int64_t rows = 0, columns = 0;
  bool is_turned = false;  // rows of the table are columns of the costs

  double at(int64_t row, int64_t column) const {
    return costs[static_cast<size_t>(is_turned ? column * rows + row : row * columns + column)];
  }
};

class Pairing {
 public:
  explicit Pairing(const CostTable& table)
      : table_(table),
        row_price_(static_cast<size_t>(table.rows)),
        column_price_(static_cast<size_t>(table.columns) + 1),
        row_of_(static_cast<size_t>(table.columns) + 1, -1) {}

  void add(int64_t row) {
    const auto columns = static_cast<size_t>(table_.columns);
    std::vector<double> least(columns, std::numeric_limits<double>::infinity());
    std::vector<size_t> before(columns, columns);
    std::vector<bool> is_reached(columns + 1, false);
    // The row to be added stands at a column behind the last one.
    row_of_[columns] = row;
    size_t at = columns;
    while (row_of_[at] >= 0) {
      is_reached[at] = true;
      at = step(at, least, before, is_reached);
    }
    for (; at != columns; at = before[at]) row_of_[at] = row_of_[before[at]];
  }

  int64_t row_of(int64_t column) const { return row_of_[static_cast<size_t>(column)]; }

 private:
  // The nearest column that is not reached yet; prices change by how far it is.
  size_t step(size_t at, std::vector<double>& least, std::vector<size_t>& before,
              const std::vector<bool>& is_reached) {
    const int64_t row = row_of_[at];
    size_t nearest = before.size();
    for (size_t column = 0; column < before.size(); ++column) {
      if (is_reached[column]) continue;
      const double reduced = table_.at(row, static_cast<int64_t>(column)) -
                             row_price_[static_cast<size_t>(row)] - column_price_[column];
      if (reduced < least[column]) {
        least[column] = reduced;
        before[column] = at;
      }
      if (nearest == before.size() || least[column] < least[nearest]) nearest = column;
    }
    const double distance = least[nearest];
    for (size_t column = 0; column <= before.size(); ++column) {
      if (is_reached[column]) {
        row_price_[static_cast<size_t>(row_of_[column])] += distance;
        column_price_[column] -= distance;
      } else if (column < before.size()) {
        least[column] -= distance;
      }
    }
    return nearest;
  }

  const CostTable& table_;
  std::vector<double> row_price_, column_price_;
  std::vector<int64_t> row_of_;  // of each column, -1: none; and the one that is being added
};

}  // namespace

std::vector<int64_t> cheapest_pairs(std::span<const double> costs, int64_t rows, int64_t columns) {
  check(rows >= 0 && columns >= 0 && std::ssize(costs) == rows * columns, ErrorKind::shape,
        "assignment: {} costs are not {} x {}", costs.size(), rows, columns);
  for (size_t i = 0; i < costs.size(); ++i) {
    check(std::isfinite(costs[i]), ErrorKind::data,
          "assignment: the cost of row {} and column {} is {}; has the model diverged?",
          static_cast<int64_t>(i) / columns, static_cast<int64_t>(i) % columns, costs[i]);
  }
  const bool is_turned = rows > columns;
  const CostTable table{costs, is_turned ? columns : rows, is_turned ? rows : columns, is_turned};
  Pairing pairing(table);
  for (int64_t row = 0; row < table.rows; ++row) pairing.add(row);
  std::vector<int64_t> column_of(static_cast<size_t>(rows), -1);
  for (int64_t column = 0; column < table.columns; ++column) {
    const int64_t row = pairing.row_of(column);
    if (row < 0) continue;
    column_of[static_cast<size_t>(is_turned ? column : row)] = is_turned ? row : column;
  }
  return column_of;
}

}  // namespace heddle
