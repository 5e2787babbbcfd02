/// Where the admin listener serves calls that change something.
package enum AdminCalls: String, CaseIterable, Sendable {
    /// On a Unix socket alone, whose file says who may connect.
    case unix
    /// On any address: whoever reaches it may call.
    case any
}
