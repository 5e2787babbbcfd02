import Origins

/// The origin's side of a request.
enum OriginSide {
    case none
    /// Servers are tried until one takes a connection.
    case dialing(OriginDial)
    case connected(OriginStream)
}
