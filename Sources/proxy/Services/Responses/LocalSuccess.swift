/// What a service has done.
package enum LocalSuccess: CaseIterable, Sendable {
    /// The answer has what was asked for.
    case served
    /// Something was made: a key is enrolled that was not.
    case created
    /// The client may send its content (RFC 9110 §15.2.1).
    case continued
    /// OPTIONS with Max-Forwards: 0 ends here (RFC 9110 §7.6.2).
    case lastHop
    /// The proxy that has asked may forward the request.
    case allowed
}

extension LocalRow {
    /// The rows of success.
    static func done(_ success: LocalSuccess) -> LocalRow {
        switch success {
        case .served, .lastHop, .allowed: LocalRow(200, .nobody, .unsaid, "")
        case .continued: LocalRow(100, .nobody, .unsaid, "")
        case .created: LocalRow(201, .nobody, .unsaid, "")
        }
    }
}
