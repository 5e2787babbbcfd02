/// Where the admin listener serves calls that change something.
package enum AdminCalls: String, CaseIterable, Sendable {
    /// On a Unix socket, whose file says who may connect, and elsewhere to who shows the token of
    /// `admin.token_file`.
    case unix
    /// On any address: whoever reaches it may call.
    case any
}
