import HTTPWire
import Telemetry
import Verification

/// The client's address, and the limits that the request counts against.
struct AddressAccount {
    /// The use that the address has made of its limits.
    enum Entry {
        /// No limits apply.
        case none
        /// The entry of the client's connection, which holds it.
        case ofConnection(AddressEntry)
        /// Held for this request alone: the connection also carries other clients' requests.
        case ofRequest(AddressEntry)
        /// The entry was released at the end of the request, which was counted against it.
        case released
    }

    var address: IPAddress
    var holding = Entry.none
    /// Nanoseconds after which the address may continue, by the last check.
    var wait: UInt64 = 0

    init(_ address: IPAddress) { self.address = address }

    var entry: AddressEntry? {
        switch holding {
        case .none, .released: nil
        case .ofConnection(let entry), .ofRequest(let entry): entry
        }
    }

    /// Whether the entry was released at the end of the request.
    var isReleased: Bool { if case .released = holding { true } else { false } }

    /// Whether the connection carries this client's requests alone, so that it may be read later.
    var hasConnection: Bool {
        switch holding {
        case .none, .ofConnection: true
        case .ofRequest, .released: false
        }
    }

    /// Gives up the entry.
    ///
    /// - Returns: the entry, if it was held for this request alone. The caller releases it.
    mutating func leave() -> AddressEntry? {
        let held = holding
        if case .none = held { return nil }
        holding = .released
        return if case .ofRequest(let entry) = held { entry } else { nil }
    }
}
