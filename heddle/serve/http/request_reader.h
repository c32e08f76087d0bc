// Requests out of the bytes of a connection, however they are cut.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "heddle/serve/http/message.h"
#include "heddle/serve/http/server.h"

namespace heddle::serve {

/// Reads the requests of one connection, one behind the other. What it says of them does not depend
/// on where the bytes were cut. Knows no socket and no time.
class RequestReader {
 public:
  enum class State : uint8_t {
    idle,    ///< no byte of a request is there
    header,  ///< more of the header is to come
    body,    ///< more of the body is
    whole,   ///< take() has it
    refused  ///< it is answered with status() and message(), and the connection ends
  };

  explicit RequestReader(const HttpLimits& limits);
  ~RequestReader();

  /// Adds bytes. returns: the state.
  State put(std::string_view bytes);
  State state() const { return state_; }
  /// Whether the client waits for a "100 Continue" before it sends the body; true once.
  bool wants_continue();

  /// The request, and begins to read the next one, of which bytes may be there already.
  HttpRequest take();
  bool is_kept() const { return is_kept_; }  ///< of that: the client wants another one
  bool is_old() const { return is_old_; }    ///< of that: HTTP/1.0, which knows no chunks

  int status() const { return status_; }
  const std::string& message() const { return message_; }

 private:
  struct Parser;
  State advance();
  void begin();
  // What the parser is to be given of the bytes from there on; "" if it must wait for more, or is
  // refused.
  std::string_view part_from(size_t read);
  // Adds to `read` what the parser takes. returns: whether it may take more
  bool feed(std::string_view part, size_t& read);
  State check_header();
  State refuse(int status, std::string message);

  const HttpLimits limits_;
  std::unique_ptr<Parser> parser_;
  std::string bytes_;  // that came and were not read yet
  decltype(HttpRequest::headers) headers_;
  State state_ = State::idle;
  bool is_kept_ = false, is_old_ = false, wants_continue_ = false;
  bool at_chunk_line_ = false;  // bytes_ begin there, and the parser has asked for more
  int status_ = 0;
  std::string message_;
};

}  // namespace heddle::serve
