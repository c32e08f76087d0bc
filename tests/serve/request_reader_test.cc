// Requests out of bytes, cut anywhere.
#include "heddle/serve/http/request_reader.h"

#include <gtest/gtest.h>

namespace heddle::serve {
namespace {

using State = RequestReader::State;

HttpLimits small_limits() {
  HttpLimits limits;
  limits.header_bytes = 512, limits.header_fields = 8, limits.body_bytes = 64;
  return limits;
}

// What the bytes come to, given so many at a time: each request, and how it ends.
std::string read(std::string_view bytes, size_t part, const HttpLimits& limits = small_limits()) {
  RequestReader reader(limits);
  std::string all;
  for (size_t at = 0; at < bytes.size(); at += part) {
    reader.put(bytes.substr(at, part));
    while (reader.state() == State::whole) {
      const HttpRequest request = reader.take();
      all +=
          fmt::format("{} {}?{} [{}]{}{} ", request.method, request.path, request.query,
                      request.body, reader.is_kept() ? " kept" : "", reader.is_old() ? " old" : "");
    }
    if (reader.state() == State::refused) return all + fmt::format("{}", reader.status());
  }
  static constexpr const char* kNames[] = {"idle", "header", "body", "whole", "refused"};
  return all + kNames[static_cast<size_t>(reader.state())];
}

TEST(RequestReader, requests_do_not_depend_on_where_their_bytes_are_cut) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "idle"},
      {"GET", "header"},
      {"GET /a?b=c HTTP/1.1\r\nHost: x\r\n\r\n", "GET /a?b=c [] kept idle"},
      {"GET / HTTP/1.0\r\n\r\n", "GET /? [] old idle"},
      {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabcGET",
       "POST /? [abc] kept header"},
      {"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nab", "body"},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\nA: "
       "b\r\n\r\n",
       "POST /? [abc] kept idle"},
      {"GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\nConnection: close\r\n\r\n",
       "GET /1? [] kept GET /2? [] idle"},
      {"nonsense\r\n\r\n", "400"},
      {"POST / HTTP/1.1\r\nContent-Length: 65\r\n\r\n", "413"},
      {"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "400"},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", "413"},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", "400"},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", "400"},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2;x=\"a\"\r\nab\r\n0;x=\"a\"\r\n\r\n",
       "POST /? [ab] kept idle"},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET",
       "POST /? [] kept header"},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n0\r\nA\r\n0\r\n", "body"},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n+0;\r\n", "400"},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n\r\n0\r\n", "400"},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\rA", "400"},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0;x=\"y\rA\r\n", "400"},
      // A quote without an end in its line, and one that another line might be thought to end.
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;x=\"\nab\r\nc\r\n0\r\n\r\n", "400"},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n20;x=\"\r\nc\"\r\n0\r\n\r\n", "400"},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nc\r\n00;x=\"\r\nA: b\r\n\r\n",
       "400"},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nc\r\n00;x=\"\r\nA: b\r\n",
       "body"},
      {"GET / HTTP/1.1\r\nA: " + std::string(600, 'a'), "431"},
      {"GET / HTTP/1.1\r\n" + std::string(600, 'a'), "431"},
  };
  for (const auto& [bytes, wanted] : cases) {
    for (const size_t part : {size_t{1}, size_t{2}, size_t{7}, bytes.size() + 1}) {
      EXPECT_EQ(read(bytes, part), wanted) << part << " at a time: " << bytes;
    }
  }
}

TEST(RequestReader, a_client_that_waits_before_its_body_is_known_once) {
  RequestReader reader(small_limits());
  reader.put("POST / HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(reader.state(), State::body);
  EXPECT_TRUE(reader.wants_continue());
  EXPECT_FALSE(reader.wants_continue());
  EXPECT_EQ(reader.put("ab"), State::whole);
}

// Who stands between may have let them through unseen.
TEST(RequestReader, fields_of_a_trailer_are_no_header) {
  RequestReader reader(small_limits());
  reader.put(
      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n"
      "Host: y\r\nAuthorization: Bearer z\r\n\r\n");
  ASSERT_EQ(reader.state(), State::whole);
  const HttpRequest request = reader.take();
  EXPECT_EQ(request.body, "a");
  EXPECT_EQ(request.headers,
            (decltype(request.headers){{"host", "x"}, {"transfer-encoding", "chunked"}}));
}

// A line that ends nowhere: neither a chunk's size nor what stands behind it is kept for ever.
TEST(RequestReader, what_is_kept_of_an_unfinished_line_is_bounded) {
  RequestReader reader(small_limits());
  reader.put("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;");
  size_t bytes = 0;
  while (reader.state() == State::body && bytes < 100'000) {
    reader.put(std::string(100, 'x'));
    bytes += 100;
  }
  EXPECT_EQ(reader.state(), State::refused);
  EXPECT_EQ(reader.status(), 400);
  EXPECT_LE(bytes, 1000u);
}

}  // namespace
}  // namespace heddle::serve
