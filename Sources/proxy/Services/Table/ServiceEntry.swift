package import HTTPWire
package import Rules

/// One row of a ``ServiceTable``: a path, what may be asked there, and who answers.
///
/// A reference, so that a request carries it at the price of one count.
package final class ServiceEntry: Sendable {
    /// What a request costs the client's address.
    package enum Cost: Sendable {
        case nothing
        /// A call of the address's rate.
        case call
        /// A call, and a verification, which may be in vain.
        case verification
    }

    /// The path behind the table's prefix and a slash; the name in the access log.
    package let name: String
    /// The methods that are served; a 405 lists them.
    package let methods: [Method]
    /// Whether a request may have content.
    package let takesContent: Bool
    package let cost: Cost
    /// By which a request is judged before the service is asked; `nil` for none.
    package let rule: Rule?
    /// Whether the service asks who calls.
    package let tellsCaller: Bool
    /// Who may ask on the operators' listener.
    let access: OperatorGate.Access
    package let service: any Service

    init(
        _ name: String,
        _ methods: [Method],
        takesContent: Bool,
        cost: Cost,
        rule: Rule? = nil,
        tellsCaller: Bool = false,
        access: OperatorGate.Access = .open,
        _ service: any Service
    ) {
        self.name = name
        self.methods = methods
        self.takesContent = takesContent
        self.cost = cost
        self.rule = rule
        self.tellsCaller = tellsCaller
        self.access = access
        self.service = service
    }
}
