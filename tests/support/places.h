// Where the build has put things. Strings and not macros, so that a test compiles to the same
// object wherever its tree lies.
#pragma once

namespace heddle::testing {

extern const char* const kProgram;   ///< heddle
extern const char* const kFixtures;  ///< tests/fixtures
extern const char* const kSource;    ///< the tree
extern const char* const kBuild;     ///< the build's folder
extern const char* const kData;      ///< the shared data; empty: not given
extern const char* const kBrowser;   ///< Chromium; empty: not given
extern const char* const kCmake;
extern const char* const kCompiler;

}  // namespace heddle::testing
