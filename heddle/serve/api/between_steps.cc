// A task that posts itself again.
#include "heddle/serve/api/between_steps.h"

#include <atomic>
#include <utility>

#include "heddle/base/names.h"

namespace heddle::serve {
namespace {

class SteppedWork : public std::enable_shared_from_this<SteppedWork> {
 public:
  SteppedWork(SharedExchange e, int64_t tokens, std::function<bool()> step)
      : exchange_(std::move(e)), tokens_(tokens), step_(std::move(step)) {}

  void start() {
    exchange_->reach(RequestPhase::queued);
    exchange_->on_gone([self = shared_from_this()] { self->is_gone_ = true; });
    go_on();
  }

 private:
  void go_on() {
    exchange_->service.engines().post([self = shared_from_this()] { self->work(); });
  }
  void work() {
    if (!is_gone_ && !has_begun_ && is_late()) {
      exchange_->fail(waited_too_long(exchange_->service));
    } else if (!is_gone_) {
      has_begun_ = true;
      exchange_->start();
      if (has_more()) return go_on();
    }
    exchange_->service.worked_off(tokens_);
  }
  bool is_late() const {
    const std::chrono::duration<double> waited = Clock::now() - exchange_->received;
    return waited.count() > exchange_->service.options().queue_seconds;
  }
  bool has_more() try {
    const FieldsByKey by_key;
    return step_();
  } catch (...) {
    exchange_->fail(std::current_exception());
    return false;
  }

  SharedExchange exchange_;
  int64_t tokens_;
  std::function<bool()> step_;
  bool has_begun_ = false;
  std::atomic<bool> is_gone_ = false;
};

}  // namespace

void work_between_steps(const SharedExchange& e, int64_t tokens, std::function<bool()> step) {
  take_room(*e, tokens);
  std::make_shared<SteppedWork>(e, tokens, std::move(step))->start();
}

}  // namespace heddle::serve
