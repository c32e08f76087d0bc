// The places that CMake knows.
#include "tests/support/places.h"

namespace heddle::testing {

const char* const kProgram = HEDDLE_PROGRAM;
const char* const kFixtures = HEDDLE_FIXTURES;
const char* const kSource = HEDDLE_SOURCE;
const char* const kBuild = HEDDLE_BUILD;
const char* const kData = HEDDLE_DATA;
const char* const kBrowser = HEDDLE_BROWSER;
const char* const kCmake = HEDDLE_CMAKE;
const char* const kCompiler = HEDDLE_COMPILER;

}  // namespace heddle::testing
