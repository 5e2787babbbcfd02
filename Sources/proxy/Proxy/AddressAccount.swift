import HTTPWire
import Verification

/// The client's address, and whose limits the request counts against.
struct AddressAccount {
    /// What the address has used of its limits.
    enum Entry {
        /// No limits apply.
        case none
        /// That of the client's connection, which holds it.
        case ofConnection(AddressEntry)
        /// Held for this request alone: a connection carries others too.
        case ofRequest(AddressEntry)
        /// It was let go of at the end of the request, which counted against it.
        case released
    }

    var address: IPAddress
    var holding = Entry.none
    /// Nanoseconds after which the address may go on, as was found last.
    var wait: UInt64 = 0

    init(_ address: IPAddress) { self.address = address }

    var entry: AddressEntry? {
        switch holding {
        case .none, .released: nil
        case .ofConnection(let entry), .ofRequest(let entry): entry
        }
    }

    /// Lets go of the entry.
    ///
    /// - Returns: the one that was held for this request alone, which is to be released.
    mutating func leave() -> AddressEntry? {
        let held = holding
        if case .none = held { return nil }
        holding = .released
        return if case .ofRequest(let entry) = held { entry } else { nil }
    }
}
