import Testing

/// The gateway between raw clients and scripted origins, on sockets of this host.
///
/// The gateway runs inside the test's process, as the program would run it: from a configuration
/// file, on event loops of its own. Client and origin are a few lines of blocking sockets with a
/// reader of their own, so that no mistake of the gateway's is shared by what judges it. Areas: the
/// cases, connections, fields, expectation, upgrade, pool, failure, content, listeners, stop.
///
/// One at a time: some measure the memory of the process, and some have short timeouts. Only
/// ``ScanTests`` run beside them.
@Suite(.serialized)
enum Scenarios {}
