// Lines of plain, compressed, damaged and missing files.
#include "heddle/base/files/lines.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <stdexcept>

#include "heddle/base/error.h"
#include "tests/base/temporary.h"

namespace heddle {
namespace {

using namespace std::string_literals;

std::string gzip(const std::string& text) {
  z_stream stream = {};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::vector<std::string> lines_of(const std::string& path) {
  LineReader reader(path);
  std::vector<std::string> lines;
  std::string line;
  while (reader.next(line)) lines.push_back(line);
  EXPECT_EQ(reader.line_number(), static_cast<int64_t>(lines.size()));
  return lines;
}

TEST(LineReader, ends_of_lines_are_stripped_and_empty_lines_kept) {
  TemporaryFolder folder;
  const std::string path = folder.write("a", "one\r\n\n three \nlast");
  EXPECT_EQ(lines_of(path), (std::vector<std::string>{"one", "", " three ", "last"}));
}

TEST(LineReader, empty_file_has_no_line) {
  TemporaryFolder folder;
  EXPECT_TRUE(lines_of(folder.write("a", "")).empty());
  EXPECT_EQ(lines_of(folder.write("b", "\n")).size(), 1u);
}

TEST(LineReader, long_and_short_lines_across_buffers_equal_the_text) {
  std::vector<std::string> expected;
  std::string text;
  for (size_t i = 0; i < 3000; ++i) {
    expected.push_back(std::string(i % 7 == 0 ? i * 31 % 200'000 : i % 90, 'a' + i % 26));
    text += expected.back() + "\n";
  }
  TemporaryFolder folder;
  EXPECT_EQ(lines_of(folder.write("plain", text)), expected);
  EXPECT_EQ(lines_of(folder.write("compressed", gzip(text))), expected);
}

TEST(LineReader, joined_gzip_members_read_as_one_file) {
  TemporaryFolder folder;
  const std::string path = folder.write("a", gzip("one\ntw") + gzip("o\nthree\n"));
  EXPECT_EQ(lines_of(path), (std::vector<std::string>{"one", "two", "three"}));
}

TEST(LineReader, truncated_gzip_is_a_data_error_at_every_length) {
  TemporaryFolder folder;
  const std::string whole = gzip("some text\nand more of it\n");
  for (size_t size = 2; size < whole.size(); ++size) {
    const std::string path = folder.write("cut.gz", whole.substr(0, size));
    expect_error(ErrorKind::data, {path, "cut short"}, [&] { lines_of(path); });
  }
}

TEST(LineReader, damaged_gzip_is_a_data_error) {
  TemporaryFolder folder;
  std::string text = gzip(std::string(5000, 'x') + "\n");
  text[text.size() - 6] ^= 1;  // in the CRC of the data
  const std::string path = folder.write("bad.gz", text);
  expect_error(ErrorKind::data, {path, "damaged"}, [&] { lines_of(path); });
}

std::string times(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

// Eight mebibytes in eight kilobytes, again and again: nobody's text.
TEST(LineReader, gzip_that_grows_beyond_measure_is_a_data_error_before_it_fills_the_memory) {
  TemporaryFolder folder;
  const std::string member = gzip(std::string(size_t{8} << 20, 'a'));
  const std::string path = folder.write("bomb.gz", times(member, 12));
  for (const bool is_whole : {false, true}) {
    expect_error(ErrorKind::data, {path, "200 times", "no text"}, [&] {
      LineReader reader(path);
      std::string line;
      is_whole ? line = reader.rest() : std::to_string(reader.next(line));
    });
  }
}

TEST(LineReader, gzip_that_repeats_itself_is_read) {
  TemporaryFolder folder;
  std::string text;
  for (int i = 0; text.size() < size_t{1} << 20; ++i) {
    text += "2026-11-22 18:09:14 UTC request " + std::to_string(i) + " answered in 12 ms\n";
  }
  const std::string path = folder.write("log.gz", times(gzip(text), 70));
  EXPECT_EQ(LineReader(path).rest(), times(text, 70));
}

TEST(LineReader, image_is_no_text_in_another_encoding) {
  const auto check_line = [](std::string_view line) { check_line_utf8(line, "x.png", 1); };
  expect_error(ErrorKind::data, {"x.png: line 1: this is an image (PNG)", "heddle classify"},
               [&] { check_line("\x89PNG"); });
  expect_error(ErrorKind::data, {"line 1 is not UTF-8 (byte 0x89 at column 2)", "iconv"},
               [&] { check_line("a\x89PNG"); });
}

TEST(LineReader, missing_file_and_folder_are_data_errors_with_the_path) {
  TemporaryFolder folder;
  expect_error(ErrorKind::data, {"none.txt", "No such file"},
               [&] { LineReader reader(folder / "none.txt"); });
  expect_error(ErrorKind::data, {folder.path(), "directory"},
               [&] { LineReader reader(folder.path()); });
}

TEST(LineReader, byte_order_mark_is_no_part_of_the_first_line) {
  TemporaryFolder folder;
  const std::string text = "\xEF\xBB\xBFone\r\n\xEF\xBB\xBFtwo\r\r\n";
  const std::vector<std::string> lines = {"one", "\xEF\xBB\xBFtwo"};  // inside it is a character
  EXPECT_EQ(lines_of(folder.write("plain", text)), lines);
  EXPECT_EQ(lines_of(folder.write("compressed", gzip(text))), lines);
  EXPECT_EQ(LineReader(folder / "plain").rest(), text.substr(3));
  EXPECT_EQ(lines_of(folder.write("mark", "\xEF\xBB\xBF")), std::vector<std::string>{""});
}

TEST(LineReader, utf16_is_a_data_error_that_says_how_to_convert) {
  TemporaryFolder folder;
  for (const std::string& text : {"\xFF\xFEo\0n\0e\0"s, "\xFE\xFF\0o\0n\0e"s}) {
    const std::string path = folder.write("wide", text);
    expect_error(ErrorKind::data, {path, "UTF-16", "iconv"}, [&] { lines_of(path); });
    expect_error(ErrorKind::data, {path, "UTF-16", "iconv"}, [&] { LineReader(path).rest(); });
  }
}

// The standard input is a pipe as long as this lives.
class PipedInput {
 public:
  PipedInput() : saved_(dup(STDIN_FILENO)) {
    if (pipe(ends_) != 0) throw std::runtime_error("no pipe");
    dup2(ends_[0], STDIN_FILENO);
    close(ends_[0]);
  }
  ~PipedInput() {
    dup2(saved_, STDIN_FILENO);
    close(saved_);
    end();
  }
  void write(const std::string& text) {
    ASSERT_EQ(::write(ends_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void end() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  int ends_[2], saved_;
};

TEST(LineReader, standard_input_gives_a_line_before_the_writer_ends) {
  PipedInput input;
  input.write("first\nsec");
  LineReader reader("-");
  std::string line;
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(line, "first");
  input.write("ond\n");
  input.end();
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(line, "second");
  EXPECT_FALSE(reader.next(line));
}

// Plain and compressed: what arrives byte by byte waits once a whole line is there, and at the end.
TEST(LineReader, line_waits_as_soon_as_its_end_has_come) {
  for (const bool is_compressed : {false, true}) {
    PipedInput input;
    LineReader reader("-");
    EXPECT_FALSE(reader.has_waiting());
    const std::string text = "one\n";
    const std::string sent = is_compressed ? gzip(text) : text;
    for (const char byte : sent) {
      input.write(std::string(1, byte));
      const bool is_whole = reader.has_waiting();
      if (&byte == &sent.front()) {
        EXPECT_FALSE(is_whole);
      }
    }
    EXPECT_TRUE(reader.has_waiting());
    std::string line;
    ASSERT_TRUE(reader.next(line));
    EXPECT_EQ(line, "one");
    EXPECT_FALSE(reader.has_waiting()) << "a writer may still come back";
    input.end();
    EXPECT_TRUE(reader.has_waiting()) << "the end needs no waiting";
    EXPECT_FALSE(reader.next(line));
  }
}

TEST(LineReader, half_a_line_does_not_wait) {
  PipedInput input;
  input.write("one\ntw");
  LineReader reader("-");
  std::string line;
  EXPECT_TRUE(reader.has_waiting());
  ASSERT_TRUE(reader.next(line));
  EXPECT_FALSE(reader.has_waiting());
  input.write("o");
  EXPECT_FALSE(reader.has_waiting());
  input.end();
  EXPECT_TRUE(reader.has_waiting());
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(line, "two");
}

}  // namespace
}  // namespace heddle
