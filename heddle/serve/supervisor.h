// What the supervisor of a service is told.
#pragma once

#include <string_view>

namespace heddle::serve {

/// Tells systemd, where it started the program with Type=notify ($NOTIFY_SOCKET): "READY=1",
/// "RELOADING=1", "STOPPING=1". Nothing happens elsewhere. Source: sd_notify(3).
void notify_supervisor(std::string_view state);

}  // namespace heddle::serve
