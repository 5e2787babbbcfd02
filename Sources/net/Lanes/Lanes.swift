// Sockets on lanes.
//
// A lane is a serial dispatch queue, one epoll set and one read source on the epoll descriptor. The
// source's handler takes what is ready, performs it, and takes again until its turn is over. Once
// nothing is left it waits for events itself for some milliseconds, and only then leaves that to
// Dispatch: a lane with nothing to do holds no thread, and a busy one wakes none. One source per
// lane instead of one per socket halves the cost of a relayed request (13 µs against 24), and a
// bare epoll loop in C is 12.
//
// Everything registered with a lane is an `Endpoint`: listeners and connections. A connection lives
// on one lane from accept to close and is touched on that lane's queue alone, so nothing here
// locks, except the `Mailbox`, in which other threads leave work. The lane sees that as an event.
//
// Sockets are registered once, edge-triggered, for both directions. Whether one is readable or
// writable is remembered until a call says otherwise, so steady traffic makes no epoll_ctl call at
// all.
//
// All connections of a lane read into the lane's one input buffer. Who consumes it may write to
// other connections, but never read one. A connection with more to read waits for another turn.
//
// What is ready waits in a `FairQueue`, by the client it is for, and a lane asks for events anew
// while some still wait. So a client that keeps the lane busy waits for itself, and others for a
// fraction of a millisecond.
//
// Deadlines are kept in a wheel of coarse ticks. Moving a deadline later costs one store. An exact
// moment takes an `Alarm`, which costs a system call.
