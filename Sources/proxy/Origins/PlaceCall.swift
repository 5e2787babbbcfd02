/// What a lane is told of places. Servers are named by ``ServerState/number``, waiters by their
/// number in the ``PlaceBook``.
enum PlaceCall: Sendable {
    /// The waiter has a place at the server.
    case granted(UInt64, server: Int)
    /// The waiter has the connection that was put aside for it.
    case given(UInt64, server: Int)
    /// The waiter is to choose a server anew.
    case again(UInt64)
    /// The waiter had to leave for another one.
    case displaced(UInt64)
    /// An idle connection to the server is to be closed if anybody waits.
    case yield(server: Int)
}
