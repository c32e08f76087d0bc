// Memory in the processor's large pages (2 MB), for blocks of any size.
#pragma once

#include <cstdint>

namespace heddle {

/// At least `bytes`, not initialised, aligned to 64. Blocks below 32 MB lie side by side, so that a
/// model's many small tensors need few entries of the processor's table of pages; larger ones have
/// pages of their own. null where the system has no memory. On any thread.
void* allocate_in_large_pages(int64_t bytes);
/// Frees a block; `bytes` as it was asked for. Pages that it shared remain for others.
void free_in_large_pages(void* block, int64_t bytes);
/// Gives the system the pages in which no block is left.
void release_free_large_pages();

}  // namespace heddle
