// Exchanges between two ranks, and the sums and texts that are made of them.
#include "heddle/dist/rank_group.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "heddle/base/error.h"
#include "heddle/base/json/json.h"
#include "heddle/dist/packed.h"
#include "heddle/dist/tcp_wire.h"

namespace heddle::dist {

namespace {

constexpr uint64_t kMostText = uint64_t{1} << 32;  // bytes of a gather or broadcast

std::vector<std::string> hosts_of(const Meeting& meeting) {
  std::vector<std::string> hosts;
  for (const Member& m : meeting.members) hosts.push_back(m.host);
  return hosts;
}

// Both stand there for the loop that compilers turn into vectors: sums of the lower rank's value
// and the higher rank's, in this order.
template <class Sent>
void add_upper(float* mine, const Sent* theirs, size_t count) {
  for (size_t i = 0; i < count; ++i) mine[i] = mine[i] + static_cast<float>(theirs[i]);
}
template <class Sent>
void add_lower(float* mine, const Sent* theirs, size_t count) {
  for (size_t i = 0; i < count; ++i) mine[i] = static_cast<float>(theirs[i]) + mine[i];
}

}  // namespace

// --- begin and end -------------------------------------------------------------------------------

RankGroup::RankGroup(Meeting meeting, std::unique_ptr<Wire> wire, const GroupOptions& options)
    : rank_(meeting.rank),
      ranks_(std::ssize(meeting.members)),
      steps_(std::bit_width(static_cast<uint64_t>(ranks_)) - 1),
      watch_(std::make_unique<Watch>(meeting.rank, hosts_of(meeting), std::move(meeting.lines),
                                     WatchOptions{.lost_seconds = options.lost_seconds,
                                                  .step_seconds = options.step_seconds})),
      wire_(std::move(wire)),
      staging_(Wire::kPart) {
  try {
    if (wire_ == nullptr) {
      wire_ = std::make_unique<TcpWire>(meeting, *watch_, options.lost_seconds);
    }
    gather("");  // all are there
  } catch (const Error& error) {
    watch_->leave_with(error.what());
    throw;
  }
}

// --- one exchange --------------------------------------------------------------------------------

// What comes before the bytes of an exchange, so that ranks that have come apart find it at once.
struct RankGroup::Head {
  uint32_t magic = 0x68646c31;
  Call call = Call::gather;
  uint64_t number = 0;  // of the call
  uint64_t values = 0;  // of the whole call
  uint64_t bytes = 0;   // that follow
  std::string text() const {
    constexpr const char* kNames[] = {"reduce_scatter", "all_gather", "gather", "broadcast"};
    const auto at = static_cast<size_t>(call);
    return fmt::format("call {}, {} of {} values", number, at < 4 ? kNames[at] : "unknown", values);
  }
};

void RankGroup::begin(Call call) {
  watch_->check_alive();
  call_ = call;
  ++calls_;
}

void RankGroup::check_head(const Head& theirs, const Head& mine, int64_t partner) const {
  check(theirs.magic == mine.magic && theirs.call == mine.call && theirs.number == mine.number &&
            theirs.values == mine.values,
        ErrorKind::internal, "{} is in {}, {} in {}", watch_->name(rank_), mine.text(),
        watch_->name(partner), theirs.text());
}

void RankGroup::fail_partner(int64_t partner) {
  watch_->fail_connection(partner, errno == 0 ? "it was closed" : std::strerror(errno));
}

// A rank waits for its partner until the head of the exchange comes: what follows it is on the
// wire.
void RankGroup::begin_wait() {
  const std::lock_guard lock(waited_mutex_);
  waits_since_ = now_seconds();
}

void RankGroup::end_wait() {
  const std::lock_guard lock(waited_mutex_);
  waited_ += now_seconds() - std::exchange(waits_since_, 0);
}

double RankGroup::seconds_waited() const {
  const std::lock_guard lock(waited_mutex_);
  return waited_ + (waits_since_ > 0 ? now_seconds() - waits_since_ : 0);
}

// Sends and receives at once with the partner of a step, whatever the sizes. A receiver has
// begin(bytes), room() for the next bytes and filled(count); null: nothing comes.
template <class Receiver>
void RankGroup::exchange(int64_t step, uint64_t values, std::span<const std::byte> bytes,
                         bool sends, Receiver* receiver) {
  const int64_t partner = rank_ ^ (int64_t{1} << step);
  const auto at = static_cast<size_t>(step);
  const Head mine{.call = call_, .number = calls_, .values = values, .bytes = bytes.size()};
  Head theirs;
  std::span<const std::byte> out_head = std::as_bytes(std::span(&mine, sends ? 1 : 0));
  std::span<std::byte> in_head =
      std::as_writable_bytes(std::span(&theirs, receiver == nullptr ? 0 : 1));
  if (!sends) bytes = {};
  bool is_receiving = receiver != nullptr;
  uint64_t expected = 0;
  const auto send_next = [&] {
    std::span<const std::byte>& next = out_head.empty() ? bytes : out_head;
    const int64_t count = wire_->send_some(at, next);
    if (count < 0) fail_partner(partner);
    next = next.subspan(static_cast<size_t>(count));
    return count > 0;
  };
  const auto receive_next = [&] {
    const bool is_head = !in_head.empty();
    std::span<std::byte> room = is_head ? in_head : receiver->room();
    if (!is_head) room = room.first(std::min<uint64_t>(room.size(), expected));
    const int64_t count = wire_->receive_some(at, room);
    if (count < 0) fail_partner(partner);
    const auto got = static_cast<size_t>(count);
    if (is_head) {
      in_head = in_head.subspan(got);
      if (!in_head.empty()) return count > 0;
      check_head(theirs, mine, partner);
      end_wait();
      receiver->begin(expected = theirs.bytes);
    } else {
      receiver->filled(got);
      expected -= got;
    }
    is_receiving = expected > 0;
    return count > 0;
  };
  if (is_receiving) begin_wait();
  watch_->note_wait(partner);
  while (is_receiving || !out_head.empty() || !bytes.empty()) {
    bool has_moved = false;
    if (!out_head.empty() || !bytes.empty()) has_moved |= send_next();
    if (is_receiving) has_moved |= receive_next();
    if (has_moved) continue;
    const bool is_sending = !out_head.empty() || !bytes.empty();
    if (wire_->wait(at, is_receiving, is_sending, watch_->verdict_fd())) watch_->check_alive();
  }
  watch_->note_wait(-1);
}

// --- sums ----------------------------------------------------------------------------------------

namespace {

// Puts what comes where it belongs.
class Values {
 public:
  explicit Values(std::span<float> to) : to_(std::as_writable_bytes(to)) {}
  void begin(uint64_t bytes) const {
    check(bytes == to_.size(), ErrorKind::internal, "{} bytes came for {}", bytes, to_.size());
  }
  std::span<std::byte> room() const { return to_; }
  void filled(size_t count) { to_ = to_.subspan(count); }

 private:
  std::span<std::byte> to_;
};

}  // namespace

// Adds what comes, part by part, while the rest is on its way.
template <class Sent>
class RankGroup::Sums {
 public:
  Sums(std::span<float> values, bool is_lower, std::span<std::byte> staging)
      : values_(values), is_lower_(is_lower), staging_(staging) {}
  void begin(uint64_t bytes) const {
    check(bytes == values_.size() * sizeof(Sent), ErrorKind::internal, "{} bytes came for {}",
          bytes, values_.size() * sizeof(Sent));
  }
  std::span<std::byte> room() const { return staging_.subspan(held_); }
  void filled(size_t count) {
    held_ += count;
    const size_t whole = held_ / sizeof(Sent), used = whole * sizeof(Sent);
    const auto* theirs = reinterpret_cast<const Sent*>(staging_.data());
    (is_lower_ ? add_upper<Sent> : add_lower<Sent>)(values_.data(), theirs, whole);
    values_ = values_.subspan(whole);
    std::memmove(staging_.data(), staging_.data() + used, held_ - used);
    held_ -= used;
  }

 private:
  std::span<float> values_;
  bool is_lower_;
  std::span<std::byte> staging_;
  size_t held_ = 0;
};

std::span<const std::byte> RankGroup::sent(std::span<const float> values, float) {
  return std::as_bytes(values);
}

std::span<const std::byte> RankGroup::sent(std::span<const float> values, bf16) {
  rounded_.resize(values.size());
  for (size_t i = 0; i < values.size(); ++i) rounded_[i] = bf16(values[i]);
  return std::as_bytes(std::span(rounded_));
}

// What this rank and its partner of a step each are to hold.
struct RankGroup::Halves {
  int64_t partner;
  std::span<float> mine, theirs;
};

RankGroup::Halves RankGroup::halves(std::span<float> values, int64_t step) const {
  const int64_t partner = rank_ ^ (int64_t{1} << step), among = int64_t{2} << step;
  const auto part_of = [&](int64_t rank) {
    const Slice s = slice_of(std::ssize(values), rank % among, among);
    return values.subspan(static_cast<size_t>(s.begin), static_cast<size_t>(s.size()));
  };
  return {partner, part_of(rank_), part_of(partner)};
}

template <class Sent>
void RankGroup::add_up(std::span<float> values) {
  for (int64_t step = 0; step < steps_; ++step) {
    const auto [partner, mine, theirs] = halves(values, step);
    Sums<Sent> sums(mine, rank_ < partner, staging_);
    exchange(step, values.size(), sent(theirs, Sent()), true, &sums);
  }
}

void RankGroup::reduce_scatter(std::span<float> values, DType sent_as) {
  begin(Call::reduce_scatter);
  if (sent_as == DType::bf16) return add_up<bf16>(values);
  add_up<float>(values);
}

void RankGroup::all_gather(std::span<float> values) {
  begin(Call::all_gather);
  for (int64_t step = steps_ - 1; step >= 0; --step) {
    const auto [partner, mine, theirs] = halves(values, step);
    Values received(theirs);
    exchange(step, values.size(), std::as_bytes(mine), true, &received);
  }
}

// --- texts ---------------------------------------------------------------------------------------

// A text of any length.
class RankGroup::Texts {
 public:
  void begin(uint64_t bytes) {
    check(bytes <= kMostText, ErrorKind::internal, "a rank sends {} bytes of text", bytes);
    text_.resize(bytes);
  }
  std::span<std::byte> room() { return std::as_writable_bytes(std::span(text_)).subspan(held_); }
  void filled(size_t count) { held_ += count; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  size_t held_ = 0;
};

std::vector<std::string> RankGroup::gather(std::string_view mine) {
  begin(Call::gather);
  // Texts of neighbouring ranks, each behind its length: in step k those of 2^k.
  std::string all = packed(std::string(mine));
  for (int64_t step = 0; step < steps_; ++step) {
    Texts theirs;
    exchange(step, 0, std::as_bytes(std::span(all)), true, &theirs);
    all = (rank_ >> step) & 1 ? theirs.text() + all : all + theirs.text();
  }
  std::vector<std::string> texts;
  for (Unpacker unpack(all); !unpack.is_at_end();) unpack(texts.emplace_back());
  check(std::ssize(texts) == ranks_, ErrorKind::internal, "gather: {} texts of {} ranks",
        texts.size(), ranks_);
  return texts;
}

std::string RankGroup::broadcast(std::string_view of_rank_0) {
  begin(Call::broadcast);
  std::string text(rank_ == 0 ? of_rank_0 : "");
  for (int64_t step = 0; step < steps_; ++step) {
    const int64_t distance = int64_t{1} << step;
    if (rank_ < distance) {
      exchange<Texts>(step, 0, std::as_bytes(std::span(text)), true, nullptr);
    } else if (rank_ < 2 * distance) {
      Texts theirs;
      exchange(step, 0, {}, false, &theirs);
      text = theirs.text();
    }
  }
  return text;
}

}  // namespace heddle::dist
