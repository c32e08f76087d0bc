// Drafts of what comes next, taken from the text itself.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace heddle {

/// At most `count` tokens that may follow a text: those behind the longest n-gram that ends it and
/// stands earlier in it too, the latest of such places; none if no n-gram of kShortestMatch tokens
/// does. What is copied may reach into itself, so that a text that goes round goes on round.
/// n-grams longer than kLongestMatch count as that long. Source: Saxena 2023, "Prompt Lookup
/// Decoding"; Yang et al. 2023, "Inference with Reference".
std::vector<int32_t> look_up(std::span<const int32_t> text, int64_t count);

inline constexpr int64_t kShortestMatch = 2, kLongestMatch = 16;

}  // namespace heddle
