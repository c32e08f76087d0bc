// Whole files and folders: reading, writing so that a crash leaves the old or the new one,
// checksums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

/// Throws the error of a failed system call: "PATH: cannot WHAT: No such file or directory".
/// Kind: data where the path is not what it should be (missing, a directory), else system.
[[noreturn]] void fail_errno(std::string_view what, const std::string& path, int error);

/// A file descriptor that closes itself; below 0 it is none.
struct Descriptor {
  int fd;
  explicit Descriptor(int f) : fd(f) {}
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
};

bool path_exists(const std::string& path);
bool is_directory(const std::string& path);
/// Size in bytes. Errors: data if the file is missing or no regular file.
int64_t file_size(const std::string& path);
/// "a/b" of "a" and "b"; "b" if "a" is empty.
std::string join_path(const std::string& folder, const std::string& name);
/// "a/b" of "a/b/c"; "." of "c".
std::string parent_path(const std::string& path);

/// The bytes of a file. Errors: data if it is missing, system if it cannot be read.
std::string read_file(const std::string& path);

/// Somewhere to put bytes one piece after the other.
using ByteSink = std::function<void(std::span<const std::byte>)>;

/// Writes a file so that at every moment `path` is the old file or the new one, complete, with the
/// old one's permissions: a temporary beside it, fsync, rename, fsync of the folder; it is removed
/// if anything goes wrong. Links are followed; a device, a pipe, /dev/stdout are written through.
/// Errors: system, naming the path (full disk, no permission); the old file is then untouched.
void write_file_atomic(const std::string& path, std::string_view text);
void write_file_atomic(const std::string& path, const std::function<void(const ByteSink&)>& writer);

/// PATH.tmp-RANDOM, 16 hex digits: a name that no other process takes, on this machine or another
/// that shares the disk. A killed process leaves it behind.
std::string temporary_name(const std::string& path);
bool is_temporary_name(std::string_view name);

/// Creates the folder and those above it. Errors: data if a file is in the way, else system.
void make_directories(const std::string& path);
/// Names in a folder, sorted, without "." and "..". Errors: data if it is missing.
std::vector<std::string> list_directory(const std::string& path);
/// Removes a file or a folder with all it holds; nothing happens if there is none.
void remove_path(const std::string& path);
/// Atomically replaces `to` by `from` and makes that durable (fsync of the folder).
void rename_path(const std::string& from, const std::string& to);
/// Makes renames and new files in a folder durable.
void sync_directory(const std::string& path);
/// Makes what a file holds durable.
void sync_file(const std::string& path);

/// Makes the folder `path`, which is missing or empty, so that at every moment it is not there or
/// complete: the writer fills a temporary folder beside it, which is then renamed.
/// Errors: system, naming the path; nothing is then left.
void write_folder_atomic(const std::string& path,
                         const std::function<void(const std::string& folder)>& writer);
/// True if the path is the folder or lies below it, by its name or behind links.
bool lies_inside(const std::string& path, const std::string& folder);

/// XXH64 of the bytes (seed 0) as 16 hex digits: what `xxhsum -H1` prints. It finds damage, at
/// memory speed; it is no protection against somebody who forges a file.
/// Source: the xxHash specification 0.1.1.
std::string checksum(std::span<const std::byte> bytes);
std::string checksum(std::string_view text);
std::string checksum_file(const std::string& path);
uint64_t xxh64(std::span<const std::byte> bytes, uint64_t seed = 0);

/// CRC-32 of the bytes (polynomial 0xEDB88320, as in ISO 3309), as zip and gzip files have it,
/// computed on all threads.
uint32_t crc32(std::span<const std::byte> bytes);

}  // namespace heddle
