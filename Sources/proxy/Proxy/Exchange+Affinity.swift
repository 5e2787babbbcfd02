import AppAttest
import Cryptography
import HTTPWire
import Origins
import RequestFlow
import Verification

// Which requests go to the same server.
extension Exchange {
    /// The same for requests that go to the same server, where the origin's balance goes by a hash.
    var affinity: UInt64 {
        switch settings.origins[originPlace].balance {
        case .roundRobin, .leastRequests: 0
        case .hash(.address): account.address.affinity
        case .hash(.key): keyAffinity ?? account.address.affinity
        }
    }

    /// Only of a key that has proven the request: a name alone would let a client choose its
    /// server.
    private var keyAffinity: UInt64? {
        guard let (ruling, _) = flow.judgement.verdict, ruling.verdict == .pass,
            let keyID = ruling.keyID
        else { return nil }
        // A digest has 32 bytes; any eight of them are spread evenly.
        let bytes = keyID.digest.bytes.span
        return (0..<8).reduce(0) { $0 << 8 | UInt64(bytes[$1]) }
    }
}

extension IPAddress {
    fileprivate var affinity: UInt64 {
        switch self {
        case .v4(let address): UInt64(address)
        case .v6(let high, let low): high ^ low
        }
    }
}
