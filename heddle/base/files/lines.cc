// Lines of plain and gzip files: read(2) plus zlib's inflate, because gzread() waits for a full
// buffer, which would hold back the answers to somebody who types.
#include "heddle/base/files/lines.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/utf8.h"

namespace heddle {

namespace {

constexpr size_t kChunk = 1 << 16;
constexpr size_t kLongestLine = size_t{1} << 28;
// Tokenizers count in 31 bits, so a longer text could not be used as one.
constexpr size_t kMostText = size_t{1} << 31;
// Text shrinks to a third or a tenth, logs that repeat themselves to a hundredth. A file made to
// fill the memory shrinks a thousandfold: it is refused once it has given so much.
constexpr size_t kMostTimes = 200, kHarmless = size_t{64} << 20;

enum class Got { bytes, nothing_yet, end };

}  // namespace

/// Bytes of a file, decompressed where needed.
class LineReader::Source {
 public:
  explicit Source(const std::string& path)
      : path_(path),
        file_(path == "-" ? dup(STDIN_FILENO) : open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (file_.fd < 0) fail_errno("cannot open", path_, errno);
  }
  ~Source() {
    if (is_gzip_) inflateEnd(&stream_);
  }

  bool is_gzip() const { return is_gzip_; }

  /// Appends some bytes to `out`. Nothing yet: only if it must not wait.
  Got read_some(std::string& out, bool may_wait) {
    may_wait_ = may_wait;
    if (!is_probed_) {
      const Got got = probe();
      if (got == Got::nothing_yet) return got;
    }
    return is_gzip_ ? inflate_some(out) : copy_some(out);
  }

 private:
  bool is_ready() const {
    pollfd one = {file_.fd, POLLIN, 0};
    return poll(&one, 1, 0) != 0;
  }

  /// Adds what one read(2) gives to input_.
  Got fill() {
    if (!may_wait_ && !is_ready()) return Got::nothing_yet;
    const size_t old = input_.size();
    input_.resize(old + kChunk);
    ssize_t n;
    do {
      n = read(file_.fd, input_.data() + old, kChunk);
    } while (n < 0 && errno == EINTR);
    const int error = errno;
    input_.resize(old + static_cast<size_t>(n > 0 ? n : 0));
    if (n < 0) fail_errno("cannot read", path_, error);
    return n > 0 ? Got::bytes : Got::end;
  }

  Got probe() {
    while (input_.size() < 2 && (input_.empty() || input_[0] == '\x1f')) {
      const Got got = fill();
      if (got == Got::nothing_yet) return got;
      if (got == Got::end) break;
    }
    is_probed_ = true;
    if (!std::string_view(input_).starts_with("\x1f\x8b")) return Got::bytes;
    std::memset(&stream_, 0, sizeof stream_);
    check(inflateInit2(&stream_, 15 + 16) == Z_OK, ErrorKind::system,
          "{}: no memory for decompression", path_);
    is_gzip_ = true;
    return Got::bytes;
  }

  Got copy_some(std::string& out) {
    if (input_.empty()) {
      const Got got = fill();
      if (got != Got::bytes) return got;
    }
    out += input_;
    input_.clear();
    return Got::bytes;
  }

  Got inflate_some(std::string& out) {
    const size_t old = out.size();
    while (out.size() == old) {
      if (consumed_ == input_.size()) {
        input_.clear();
        consumed_ = 0;
        const Got got = fill();
        check(got != Got::end || is_between_members_, ErrorKind::data,
              "{}: the gzip stream ends in the middle, after {} decompressed bytes; the file may "
              "be cut short, fetch it again",
              path_, total_out_);
        if (got != Got::bytes) return got;
      }
      inflate_step(out);
    }
    return Got::bytes;
  }

  void inflate_step(std::string& out) {
    const size_t old = out.size();
    out.resize(old + 4 * kChunk);
    is_between_members_ = false;
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data() + consumed_);
    stream_.avail_in = static_cast<uInt>(input_.size() - consumed_);
    stream_.next_out = reinterpret_cast<Bytef*>(out.data() + old);
    stream_.avail_out = 4 * kChunk;
    const int status = inflate(&stream_, Z_NO_FLUSH);
    total_in_ += input_.size() - consumed_ - stream_.avail_in;
    consumed_ = input_.size() - stream_.avail_in;
    out.resize(out.size() - stream_.avail_out);
    total_out_ += out.size() - old;
    check(total_out_ <= kHarmless || total_out_ / kMostTimes <= total_in_, ErrorKind::data,
          "{}: {} compressed bytes give {} and more, over {} times as many; this is no text. If it "
          "is meant so, decompress the file first",
          path_, total_in_, total_out_, kMostTimes);
    if (status == Z_STREAM_END) {
      is_between_members_ = true;  // gzip files may be joined end to end
      inflateReset(&stream_);
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      fail(ErrorKind::data, "{}: damaged gzip stream after {} decompressed bytes ({})", path_,
           total_out_, stream_.msg ? stream_.msg : "unknown reason");
    }
  }

  std::string path_;
  Descriptor file_;
  std::string input_;
  size_t consumed_ = 0;
  size_t total_in_ = 0, total_out_ = 0;
  bool may_wait_ = true;
  bool is_probed_ = false;
  bool is_gzip_ = false;
  bool is_between_members_ = false;
  z_stream stream_;
};

LineReader::LineReader(const std::string& path)
    : path_(path == "-" ? "standard input" : path), source_(std::make_unique<Source>(path)) {
  if (path != "-" && is_directory(path)) {
    fail(ErrorKind::data, "{}: is a directory; a text file is needed", path);
  }
}
LineReader::~LineReader() = default;
LineReader::LineReader(LineReader&&) noexcept = default;

std::string LineReader::rest() {
  buffer_.erase(0, begin_);
  begin_ = searched_ = 0;
  while (source_->read_some(buffer_, true) != Got::end) {
    check(buffer_.size() < kMostText, ErrorKind::data,
          "{}: more than 2 GiB of text{}; split it into several files", path_,
          source_->is_gzip() ? " once it is decompressed" : "");
  }
  if (line_number_ == 0) begin_text(buffer_);
  is_at_end_ = true;
  return std::exchange(buffer_, {});
}

void LineReader::begin_text(std::string& text) const {
  text.erase(0, text.size() - without_byte_order_mark(text).size());
  check(!text.starts_with("\xFF\xFE") && !text.starts_with("\xFE\xFF"), ErrorKind::data,
        "{}: begins with the byte-order mark of UTF-16, not UTF-8; convert it, for example with "
        "iconv -f UTF-16 -t UTF-8",
        path_);
}

bool LineReader::find_line_end(bool may_wait) {
  for (;;) {
    searched_ = std::min(buffer_.find('\n', searched_), buffer_.size());
    if (searched_ < buffer_.size() || is_at_end_) return true;
    buffer_.erase(0, std::exchange(begin_, 0));
    check(buffer_.size() < kLongestLine, ErrorKind::data,
          "{}: line {} is longer than 256 MiB; is this a text file?", path_, line_number_ + 1);
    searched_ = buffer_.size();
    const Got got = source_->read_some(buffer_, may_wait);
    if (got == Got::nothing_yet) return false;
    is_at_end_ = got == Got::end;
  }
}

bool LineReader::has_waiting() { return find_line_end(false); }

bool LineReader::next(std::string& line) {
  find_line_end(true);
  if (begin_ == buffer_.size()) return false;
  line.assign(buffer_, begin_, searched_ - begin_);
  while (line.ends_with('\r')) line.pop_back();
  if (line_number_ == 0) begin_text(line);
  begin_ = searched_ = std::min(searched_ + 1, buffer_.size());
  ++line_number_;
  return true;
}

void check_line_utf8(std::string_view line, const std::string& path, int64_t number) {
  if (const auto at = first_invalid_utf8(line)) {
    check_no_image(line, fmt::format("{}: line {}", path, number));
    fail(ErrorKind::data,
         "{}: line {} is not UTF-8 (byte {:#04x} at column {}); convert the file, e.g. with iconv",
         path, number, static_cast<uint8_t>(line[*at]), *at + 1);
  }
}

std::vector<std::string> read_lines(const std::string& path, std::string_view who) {
  LineReader reader(path);
  std::vector<std::string> lines;
  for (std::string line; reader.next(line);) lines.push_back(std::move(line));
  check(!lines.empty(), ErrorKind::data, "{}: the file is empty; {} needs at least one line", path,
        who);
  return lines;
}

std::string_view without_byte_order_mark(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  return text;
}

}  // namespace heddle
