#include "brigade/comm/group.h"

namespace brigade::comm {

Pending& Pending::operator=(Pending&& other) noexcept {
  std::swap(group_, other.group_);
  std::swap(ticket_, other.ticket_);
  return *this;
}

Pending::~Pending() {
  if (group_ != nullptr) group_->abandon(ticket_);
}

void Pending::wait() {
  // A group that throws has forgotten the operation.
  if (Group* group = std::exchange(group_, nullptr)) group->finish(ticket_);
}

bool Pending::test() {
  if (group_ == nullptr) return true;
  Group* group = std::exchange(group_, nullptr);
  if (group->try_finish(ticket_)) return true;
  group_ = group;
  return false;
}

}  // namespace brigade::comm
