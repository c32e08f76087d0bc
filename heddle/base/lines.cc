// Lines of plain and gzip files: read(2) plus zlib's inflate, because gzread() waits for a full
// buffer, which would hold back the answers to somebody who types.
#include "heddle/base/lines.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "heddle/base/error.h"
#include "heddle/base/files.h"

namespace heddle {

namespace {

constexpr size_t kChunk = 1 << 16;
constexpr size_t kLongestLine = size_t{1} << 30;
// Tokenizers count in 31 bits, so a longer text could not be used as one.
constexpr size_t kMostText = size_t{1} << 31;
// Text shrinks to a third or a tenth, logs that repeat themselves to a hundredth. A file made to
// fill the memory shrinks a thousandfold: it is refused once it has given so much.
constexpr size_t kMostTimes = 250, kHarmless = size_t{64} << 20;

}  // namespace

/// Bytes of a file, decompressed where needed.
class LineReader::Source {
 public:
  explicit Source(const std::string& path) : path_(path) {
    fd_ = path == "-" ? dup(STDIN_FILENO) : open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ < 0) fail_errno("cannot open", path_, errno);
  }
  ~Source() {
    close(fd_);
    if (is_gzip_) inflateEnd(&stream_);
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  bool is_gzip() const { return is_gzip_; }

  /// Appends some bytes to `out`; false at the end.
  bool read_some(std::string& out) {
    if (!is_probed_) probe();
    return is_gzip_ ? inflate_some(out) : copy_some(out);
  }

 private:
  /// Adds what one read(2) gives to input_; false at the end of the file.
  bool fill() {
    const size_t old = input_.size();
    input_.resize(old + kChunk);
    ssize_t n;
    do {
      n = read(fd_, input_.data() + old, kChunk);
    } while (n < 0 && errno == EINTR);
    const int error = errno;
    input_.resize(old + static_cast<size_t>(n > 0 ? n : 0));
    if (n < 0) fail_errno("cannot read", path_, error);
    return n > 0;
  }

  void probe() {
    is_probed_ = true;
    while (input_.size() < 2) {
      if (!fill()) return;
      if (input_[0] != '\x1f') return;
    }
    if (input_[0] != '\x1f' || input_[1] != '\x8b') return;
    std::memset(&stream_, 0, sizeof stream_);
    check(inflateInit2(&stream_, 15 + 16) == Z_OK, ErrorKind::system,
          "{}: no memory for decompression", path_);
    is_gzip_ = true;
  }

  bool copy_some(std::string& out) {
    if (input_.empty() && !fill()) return false;
    out += input_;
    input_.clear();
    return true;
  }

  bool inflate_some(std::string& out) {
    const size_t old = out.size();
    while (out.size() == old) {
      if (consumed_ == input_.size()) {
        input_.clear();
        consumed_ = 0;
        if (!fill()) {
          check(is_between_members_, ErrorKind::data,
                "{}: the gzip stream ends in the middle, after {} decompressed bytes; the file may "
                "be cut short, fetch it again",
                path_, total_out_);
          return false;
        }
      }
      inflate_step(out);
    }
    return true;
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
  int fd_ = -1;
  std::string input_;
  size_t consumed_ = 0;
  size_t total_in_ = 0, total_out_ = 0;
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
LineReader& LineReader::operator=(LineReader&&) noexcept = default;

std::string LineReader::rest() {
  buffer_.erase(0, begin_);
  begin_ = 0;
  while (source_->read_some(buffer_)) {
    check(buffer_.size() < kMostText, ErrorKind::data,
          "{}: more than 2 GiB of text{}; split it into several files", path_,
          source_->is_gzip() ? " once it is decompressed" : "");
  }
  return std::exchange(buffer_, {});
}

bool LineReader::refill() {
  buffer_.erase(0, begin_);
  begin_ = 0;
  check(buffer_.size() < kLongestLine, ErrorKind::data,
        "{}: line {} is longer than 1 GiB; is this a text file?", path_, line_number_ + 1);
  return source_->read_some(buffer_);
}

bool LineReader::next(std::string& line) {
  size_t searched = begin_;
  size_t end = buffer_.find('\n', searched);
  while (end == std::string::npos) {
    searched = buffer_.size() - begin_;  // refill() moves the unread part to the front
    if (!refill()) {
      if (buffer_.empty()) return false;
      end = buffer_.size();
      break;
    }
    end = buffer_.find('\n', searched);
  }
  line.assign(buffer_, begin_, end - begin_);
  if (!line.empty() && line.back() == '\r') line.pop_back();
  begin_ = end < buffer_.size() ? end + 1 : end;
  ++line_number_;
  return true;
}

}  // namespace heddle
