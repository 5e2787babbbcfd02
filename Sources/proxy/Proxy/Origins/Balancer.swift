import AppAttest
import Cryptography
import Glibc
import HTTPWire

/// Chooses one of several servers, by their places. It allocates nothing once it is made.
struct Balancer {
    /// The state of the server at a place.
    struct Candidate {
        /// Its share, 1 or more.
        let weight: Int
        /// Requests that it has under way.
        let load: Int
        /// Distinguishes servers. It is the same on all event loops and gateways.
        let seed: UInt64
    }

    private let balance: Balance
    private var credits: [Int]
    /// Where a search begins, so that equal servers are used in turn.
    private var next = 0

    init(_ balance: Balance, count: Int) {
        self.balance = balance
        credits = Array(repeating: 0, count: count)
    }

    /// The place of a server; `nil` when there is no candidate.
    ///
    /// - affinity: the value that requests for the same server have in common.
    /// - candidate: `nil` for a server that gets no request.
    mutating func choose(affinity: UInt64, _ candidate: (Int) -> Candidate?) -> Int? {
        switch balance {
        case .roundRobin: chooseByTurn(candidate)
        case .leastRequests: chooseByLoad(candidate)
        case .hashKey, .hashAddress: chooseByHash(affinity, candidate)
        }
    }

    /// Each server earns its weight, and the server with the most credit pays for all: shares are
    /// exact, and the requests for one server are spread. (nginx calls it smooth weighted
    /// balancing.)
    private mutating func chooseByTurn(_ candidate: (Int) -> Candidate?) -> Int? {
        var best: Int?
        var total = 0
        for place in credits.indices {
            guard let weight = candidate(place)?.weight else { continue }
            credits[place] += weight
            total += weight
            if let richest = best, credits[place] <= credits[richest] { continue }
            best = place
        }
        if let best { credits[best] -= total }
        return best
    }

    private mutating func chooseByLoad(_ candidate: (Int) -> Candidate?) -> Int? {
        var best: (place: Int, candidate: Candidate)?
        for step in credits.indices {
            let place = (next + step) % credits.count
            guard let found = candidate(place) else { continue }
            // (load + 1) / weight, without a division.
            if let best,
                (found.load + 1) * best.candidate.weight
                    >= (best.candidate.load + 1) * found.weight
            {
                continue
            }
            best = (place, found)
        }
        guard let best else { return nil }
        next = (best.place + 1) % credits.count
        return best.place
    }

    /// Rendezvous hashing: every server draws a number for the subject, and the lowest wins. When a
    /// server goes, only its own subjects move. Dividing the logarithm by the weight makes the
    /// chance to win proportional to it.
    private func chooseByHash(_ affinity: UInt64, _ candidate: (Int) -> Candidate?) -> Int? {
        var best: (place: Int, draw: Double)?
        for place in credits.indices {
            guard let found = candidate(place) else { continue }
            let bits = Self.mixed(affinity ^ found.seed) >> 11
            let uniform = (Double(bits) + 0.5) * 0x1p-53
            let draw = -log(uniform) / Double(found.weight)
            if let best, draw >= best.draw { continue }
            best = (place, draw)
        }
        return best?.place
    }

    /// Spreads bits over the whole word (the finaliser of SplitMix64).
    static func mixed(_ word: UInt64) -> UInt64 {
        var word = word &+ 0x9E37_79B9_7F4A_7C15
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }
}

// The choice of requests for the same server.
extension Balance {
    /// The value that requests for the same server have in common, where the balance uses a hash.
    ///
    /// - passed: the key that has proven the request. With an unproved key id a client could choose
    ///   its server.
    func affinity(of address: IPAddress, passed: KeyID?) -> UInt64 {
        switch self {
        case .roundRobin, .leastRequests: return 0
        case .hashAddress: return address.affinity
        case .hashKey:
            guard let passed else { return address.affinity }
            // A digest has 32 bytes; any eight of them are evenly distributed.
            return passed.digest.firstWord
        }
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
