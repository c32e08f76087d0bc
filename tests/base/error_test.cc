// What programs and servers tell of an error.
#include "heddle/base/error.h"

#include "heddle/base/names.h"

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
  expect(ErrorKind::ranks, 7, 503);
  expect(ErrorKind::internal, 70, 500);
}

// Whatever is said of a field, values with backquotes stay as they are.
TEST(Error, names_the_fields_of_its_format_as_the_program_does) {
  const auto said = [] {
    try {
      fail(ErrorKind::usage, "lower `block_size`, or run `git pull`: {}", "`batch_size` ` {");
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_EQ(said(), "lower block_size, or run `git pull`: `batch_size` ` {");
  name_fields_by([](std::string_view key) { return "<" + std::string(key) + ">"; });
  EXPECT_EQ(said(), "lower <block_size>, or run `git pull`: `batch_size` ` {");
  EXPECT_EQ(field_name("seed"), "<seed>");
  name_fields_by(nullptr);
}

}  // namespace
}  // namespace heddle
