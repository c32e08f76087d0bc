// What programs and servers tell of an error.
#include "heddle/base/error.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

// Each kind with the exit code that scripts know and the status that HTTP clients know: 4xx says
// that the same request fails again whatever the server does.
TEST(ErrorKind, has_an_exit_code_and_a_status) {
  const auto expect = [](ErrorKind kind, int exit_code, int status) {
    EXPECT_EQ(Error(kind, "").exit_code(), exit_code) << error_kind_name(kind);
    EXPECT_EQ(http_status(kind), status) << error_kind_name(kind);
  };
  expect(ErrorKind::usage, 2, 400);
  expect(ErrorKind::data, 3, 422);
  expect(ErrorKind::shape, 4, 500);
  expect(ErrorKind::device, 5, 501);
  expect(ErrorKind::system, 6, 503);
  expect(ErrorKind::internal, 70, 500);
}

}  // namespace
}  // namespace heddle
