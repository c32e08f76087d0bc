// Reading labels, splitting, and checking them against each other.
#include "heddle/data/labelled.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "heddle/base/error.h"
#include "heddle/base/files/lines.h"
#include "heddle/base/log.h"
#include "heddle/base/names.h"
#include "heddle/base/progress.h"
#include "heddle/base/rng.h"
#include "heddle/text/strings/strings.h"

namespace heddle {
namespace {

std::vector<LabelledText> read_texts(const std::string& path, const LabelledFiles& o) {
  std::vector<LabelledText> texts;
  const std::string hint = name_fields(
      "Name columns by `text_key` and `label_key`; of a file without such a row, by their numbers "
      "(`text_key` 1 `label_key` 2)");
  for (TableRow& row : read_columns(path, {o.files.text_key, o.label_key}, hint)) {
    texts.push_back({{std::move(row.cells[0])},
                     {std::string(trimmed(row.cells[1]))},
                     fmt::format("{}: line {}", path, row.line)});
  }
  return texts;
}

std::vector<LabelledText> read_json_words(const std::string& path, const LabelledFiles& o) {
  std::vector<LabelledText> texts;
  for_json_lines(path, [&](const Json& json, const std::string& where, int64_t) {
    LabelledText& text = texts.emplace_back();
    text.words = json.at(o.files.text_key, where).as_strings(where);
    for (const Json& label : json.at(o.label_key, where).as_array(where)) {
      text.labels.emplace_back(label.is_string() ? trimmed(label.as_string()) : label.dump());
    }
    text.place = where;
    check(text.words.size() == text.labels.size(), ErrorKind::data,
          "{}: {} words but {} labels; each word needs one", where, text.words.size(),
          text.labels.size());
  });
  return texts;
}

std::vector<LabelledText> read_conll(const std::string& path) {
  std::vector<LabelledText> texts;
  LabelledText text;
  const auto end_text = [&] {
    if (!text.words.empty()) texts.push_back(std::move(text));
    text = LabelledText();
  };
  LineReader reader(path);
  for (std::string line; reader.next(line);) {
    const std::string where = fmt::format("{}: line {}", path, reader.line_number());
    reader.check_utf8(line);
    const std::vector<std::string> fields = split_at_spaces(line);
    if (fields.empty()) {
      end_text();
      continue;
    }
    check(fields.size() > 1, ErrorKind::data, "{} has one field; a word and its label are needed",
          where);
    if (text.words.empty()) text.place = where;
    text.words.push_back(fields.front());
    text.labels.push_back(fields.back());
  }
  end_text();
  return texts;
}

// The first ones of a random order are held out, but for the last text of each label, which would
// leave training without it; both parts keep the order of the file.
void hold_out(LabelledSplit& split, double share, uint64_t seed) {
  const size_t n = split.train.size();
  const auto count = static_cast<size_t>(std::ceil(share * static_cast<double>(n)));
  check(count > 0 && count < n, ErrorKind::data,
        "of {} labelled texts {} would be held out; give `val_data`, or another `val_share`", n,
        count);
  std::vector<size_t> order(n);
  for (size_t i = 0; i < n; ++i) order[i] = i;
  RngStream random(make_key(seed, 0, hash_name("data/held-out labels")));
  shuffle_values(order, random);
  std::map<std::string, size_t> last_of;
  for (const size_t i : order) {
    for (const std::string& label : split.train[i].labels) last_of[label] = i;
  }
  std::set<size_t> kept, held;
  for (const auto& [label, i] : last_of) kept.insert(i);
  for (const size_t i : order) {
    if (held.size() < count && !kept.contains(i)) held.insert(i);
  }
  check(!held.empty(), ErrorKind::data,
        "none of {} labelled texts can be held out, since each is the only one of a label; give "
        "`val_data`",
        n);
  std::vector<LabelledText> train;
  for (size_t i = 0; i < n; ++i) {
    (held.contains(i) ? split.val : train).push_back(std::move(split.train[i]));
  }
  split.train = std::move(train);
}

void leave_out_unlabelled(std::vector<LabelledText>& texts) {
  const auto lacks_label = [](const LabelledText& t) {
    return std::ranges::any_of(t.labels, [](const std::string& label) { return label.empty(); });
  };
  const auto first = std::ranges::find_if(texts, lacks_label);
  if (first == texts.end()) return;
  const std::string place = first->place;
  const auto count = static_cast<int64_t>(std::erase_if(texts, lacks_label));
  log_warning("left out: {}, the first at {}",
              counted(count, "text without a label", "texts without a label"), place);
}

}  // namespace

std::vector<LabelledText> read_labelled_file(const std::string& path, const LabelledFiles& o) {
  std::vector<LabelledText> texts = !o.is_words           ? read_texts(path, o)
                                    : is_json_lines(path) ? read_json_words(path, o)
                                                          : read_conll(path);
  std::erase_if(texts, [](const LabelledText& t) { return t.words.empty(); });
  leave_out_unlabelled(texts);
  check(!texts.empty(), ErrorKind::data, "{}: the file has no labelled text", path);
  return texts;
}

LabelledSplit read_labelled(const LabelledFiles& options) {
  const TextFiles files = find_text_files(options.files);
  LabelledSplit split;
  for (const std::string& path : files.train) {
    std::vector<LabelledText> texts = read_labelled_file(path, options);
    std::move(texts.begin(), texts.end(), std::back_inserter(split.train));
  }
  if (files.val.empty()) {
    hold_out(split, options.files.val_share, options.seed);
  } else {
    split.val = read_labelled_file(files.val, options);
  }
  std::set<std::string> labels;
  for (const LabelledText& t : split.train) labels.insert(t.labels.begin(), t.labels.end());
  check(labels.size() >= 2, ErrorKind::data,
        "{}: all texts have the label '{}'; there is nothing to tell apart", files.train[0],
        *labels.begin());
  for (const LabelledText& t : split.val) {
    for (const std::string& label : t.labels) {
      check(labels.contains(label), ErrorKind::data,
            "{}: the label '{}' is not among the {} of the training text", t.place, label,
            labels.size());
    }
  }
  split.labels.assign(labels.begin(), labels.end());
  return split;
}

}  // namespace heddle
