// The parser of Boost.Beast under our limits.
#include "heddle/serve/http/request_reader.h"

#include <utility>  // Boost 1.74 needs it and does not say so

#include <algorithm>
#include <boost/beast/http.hpp>
#include <cctype>

#include "heddle/base/error.h"

namespace heddle::serve {

namespace http = boost::beast::http;

namespace {

// Whether the line of a chunk's size lies there whole, or that of the last chunk with its trailer.
bool has_whole_line(std::string_view rest) {
  if (rest.starts_with("\r\n")) rest.remove_prefix(2);  // of the chunk before
  const size_t behind = rest.find_first_not_of('0');
  const bool is_last = behind != 0 && behind != rest.npos &&
                       std::isxdigit(static_cast<unsigned char>(rest[behind])) == 0;
  return rest.find(is_last ? "\r\n\r\n" : "\r\n") != rest.npos;
}

// A target with its server, as a proxy may send it: "http://host:port/path" is /path, asked of that
// host whatever the field says (RFC 9112, 3.2.2).
void take_authority(HttpRequest& request) {
  constexpr boost::beast::string_view kScheme = "http://";
  const boost::beast::string_view path(request.path.data(), request.path.size());
  if (!boost::beast::iequals(path.substr(0, kScheme.size()), kScheme)) return;
  const size_t end =
      std::min(request.path.find_first_of("/?", kScheme.size()), request.path.size());
  const std::string host = request.path.substr(kScheme.size(), end - kScheme.size());
  request.path.erase(0, end);
  if (!request.path.starts_with('/')) request.path.insert(0, "/");
  for (auto& [name, value] : request.headers) {
    if (name == "host") value = host;
  }
}

}  // namespace

struct RequestReader::Parser {
  http::request_parser<http::string_body> http;
};

RequestReader::RequestReader(const HttpLimits& limits) : limits_(limits) {}
RequestReader::~RequestReader() = default;

RequestReader::State RequestReader::put(std::string_view bytes) {
  bytes_ += bytes;
  return advance();
}

bool RequestReader::wants_continue() { return std::exchange(wants_continue_, false); }

RequestReader::State RequestReader::refuse(int status, std::string message) {
  status_ = status, message_ = std::move(message);
  return state_ = State::refused;
}

RequestReader::State RequestReader::advance() {
  size_t read = 0;
  while (state_ != State::whole && state_ != State::refused && read < bytes_.size()) {
    if (state_ == State::idle) begin();
    const std::string_view part = part_from(read);
    if (part.empty() || !feed(part, read)) break;
  }
  if (state_ == State::refused) return state_;
  bytes_.erase(0, read);
  if (state_ == State::body && std::ssize(bytes_) > limits_.header_bytes) {
    // What the parser does not take of a body is the line of a chunk's size.
    return refuse(400, "the line of a chunk is too long");
  }
  return state_;
}

void RequestReader::begin() {
  parser_ = std::make_unique<Parser>();
  parser_->http.header_limit(static_cast<uint32_t>(limits_.header_bytes) + 1);  // looked at here
  parser_->http.body_limit(static_cast<uint64_t>(limits_.body_bytes));
  state_ = State::header;
}

std::string_view RequestReader::part_from(size_t read) {
  const std::string_view rest = std::string_view(bytes_).substr(read);
  if (state_ != State::header) {
    // Of a first chunk that is the last, the parser asks for more: a debug build aborts on 4 bytes.
    const bool is_empty = at_chunk_line_ && parser_->http.get().body().empty();
    return is_empty && rest.size() == 4 && rest.starts_with("0\r\n") ? "" : rest;
  }
  // The parser gets a header whole: what it says of a part depends on the part.
  const size_t blank = rest.find("\r\n\r\n");
  const std::string_view header = rest.substr(0, blank == rest.npos ? blank : blank + 4);
  if (std::ssize(header) > limits_.header_bytes) {
    refuse(431, fmt::format("the header is longer than {} bytes", limits_.header_bytes));
    return "";
  }
  return blank == rest.npos ? "" : header;
}

bool RequestReader::feed(std::string_view part, size_t& read) {
  boost::system::error_code error;
  const size_t taken = parser_->http.put(boost::asio::buffer(part), error);
  read += taken;
  const bool wants_more = error == http::error::need_more;
  if (error == http::error::body_limit) {
    refuse(413, fmt::format("the body is longer than {} bytes", limits_.body_bytes));
  } else if (error && !wants_more) {
    refuse(400, "this is no HTTP/1.1 request: " + error.message());
  } else if (state_ == State::header && parser_->http.is_header_done()) {
    state_ = State::body;
    check_header();
  }
  if (state_ == State::refused) return false;
  if (parser_->http.is_done()) state_ = State::whole;
  at_chunk_line_ = wants_more && state_ == State::body && parser_->http.chunked();
  // What has no end then is a quote in the line: the parser would look for it in the bytes that
  // come next, and what it finds would depend on how many there are.
  if (at_chunk_line_ && has_whole_line(part.substr(taken))) {
    refuse(400, "a quote in the line of a chunk has no end");
  }
  return !wants_more && (taken > 0 || state_ == State::whole);
}

RequestReader::State RequestReader::check_header() {
  const auto& header = parser_->http.get();
  const auto fields = std::distance(header.begin(), header.end());
  if (fields > limits_.header_fields) {
    return refuse(
        431, fmt::format("the header has {} fields; at most {}", fields, limits_.header_fields));
  }
  const bool has_coding = header.count(http::field::transfer_encoding) > 0;
  // Two lengths: whoever stands between may have believed the other.
  if (has_coding && header.count(http::field::content_length) > 0) {
    return refuse(400, "the request has both Transfer-Encoding and Content-Length");
  }
  // Of several codings the parser looks at the last; whoever stands between may look at all.
  if (has_coding && (header.count(http::field::transfer_encoding) > 1 ||
                     !boost::beast::iequals(header[http::field::transfer_encoding], "chunked"))) {
    return refuse(400, "the Transfer-Encoding is not the one that is known here: chunked");
  }
  if (header.count(http::field::host) > 1) return refuse(400, "the request has two Host fields");
  // Taken here: a trailer's fields are none of them.
  headers_.clear();
  for (const auto& field : header) {
    std::string name(field.name_string());
    std::ranges::transform(name, name.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    });
    headers_.emplace_back(std::move(name), std::string(field.value()));
  }
  wants_continue_ = !parser_->http.is_done() &&
                    boost::beast::iequals(header[http::field::expect], "100-continue");
  return state_;
}

HttpRequest RequestReader::take() {
  check(state_ == State::whole, ErrorKind::internal, "a request is taken that is not whole");
  http::request<http::string_body> message = parser_->http.release();
  is_kept_ = message.keep_alive();
  is_old_ = message.version() < 11;
  HttpRequest request{.method = std::string(message.method_string()),
                      .path = std::string(message.target()),
                      .body = std::move(message.body())};
  request.headers = std::move(headers_);
  take_authority(request);
  const size_t mark = request.path.find('?');
  if (mark != std::string::npos) {
    request.query = request.path.substr(mark + 1);
    request.path.resize(mark);
  }
  parser_.reset();
  if (bytes_.empty())
    bytes_ = std::string();  // a connection that waits holds no memory of the last
  wants_continue_ = false;
  state_ = State::idle;
  advance();
  return request;
}

}  // namespace heddle::serve
