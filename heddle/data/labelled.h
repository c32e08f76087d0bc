// Texts, or words of texts, with labels: for classification and tagging.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/data/documents.h"

namespace heddle {

/// A text with one label, or words with as many labels.
struct LabelledText {
  std::vector<std::string> words;  ///< of classification the whole text alone
  std::vector<std::string> labels;
  std::string place;  ///< "FILE: line 7"
};

struct LabelledFiles {
  DocumentFiles files = {};  ///< text_key: column of the text, or of the list of words
  std::string label_key = "label";
  bool is_words = false;  ///< a label a word
  uint64_t seed = 0;      ///< chooses what is held out, where no file is
};

struct LabelledSplit {
  std::vector<LabelledText> train, val;
  std::vector<std::string> labels;  ///< of the training texts, sorted
};

/// Texts with labels out of a .csv, .tsv or .jsonl file, see read_columns(). Words with labels out
/// of JSON lines with two lists, or of any other file with a word and its label, the last of what
/// white space separates, on each line and a blank line behind each sentence (CoNLL). White space
/// at the ends of labels is no part of them; texts whose label, or one of them, is empty then are
/// left out, and a warning counts them. Of the options the keys and is_words count.
/// Errors: those of read_columns(); data, naming the place, for lists of different lengths, a line
/// of one field, or a file without labelled text.
std::vector<LabelledText> read_labelled_file(const std::string& path, const LabelledFiles& options);

/// The texts of options.files. Where no file is held out, val_share of the texts, chosen by the
/// seed, is; of each label at least one text is left to train on, so that fewer may be held out.
/// Errors: those of read_labelled_file(); data, naming the place, for a held-out label that the
/// training texts do not have, fewer than two labels, or a share that leaves no text to either
/// part.
LabelledSplit read_labelled(const LabelledFiles& options);

}  // namespace heddle
