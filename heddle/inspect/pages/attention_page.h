// The page of `heddle attention`: heads to pick, as lines and as matrices, with their statistics.
#pragma once

#include <string>
#include <vector>

#include "heddle/inspect/attention_maps.h"
#include "heddle/inspect/pages/page.h"

namespace heddle::inspect {

/// The page over these maps, which opens with maps[shown].
Page attention_page(const Subject& subject, const std::vector<HeadMap>& maps,
                    const std::optional<Link>& link, size_t shown);

/// The same as plain JSON: "sides" (tokens and words), "heads" with statistics and "weights", a row
/// a query, 6 digits; where only the largest are kept, "columns" beside them.
Json attention_json(const Subject& subject, const std::vector<HeadMap>& maps,
                    const std::optional<Link>& link);

/// The head that a reader should see first: the best of the link, else the most important one of
/// the last kind (cross attention, if there is any), else the first.
size_t first_shown(const std::vector<HeadMap>& maps);

/// The heads with their statistics as text, the best of the link or the most important first.
std::string heads_table(const Subject& subject, const std::vector<HeadMap>& maps,
                        const std::optional<Link>& link, size_t most);

}  // namespace heddle::inspect
