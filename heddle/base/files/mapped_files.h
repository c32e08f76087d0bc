// Files that are mapped into memory (mmap.h) must not change meanwhile: what is done if they do.
#pragma once

namespace heddle {

/// To be called before work is done with what files hold: errors if a file that is mapped was
/// written to since it was opened. Costs a system call (fstat, 0.3 µs) a file. A file that was
/// removed, or replaced by another, has not changed.
/// Errors: data, naming the file, with its size then and now.
void check_mapped_files();

/// From now on a program that touches bytes which a mapped file no longer has ends with a message
/// that names the file and exit code 3 (data), rather than by SIGBUS without a word. Any other
/// SIGBUS ends it as before. Calling it again changes nothing.
void explain_cut_files();

}  // namespace heddle
