import RequestBinding
import SoftwareAuthenticator

/// Rules that several suites try, each for the path `/v1/` and its name.
enum StockRule: String {
    /// Method and target are signed.
    case bare
    /// The same; where the store can't decide, the request is forwarded.
    case lenient
    /// The same; counters may come out of order.
    case window
    /// All parts are signed, with a challenge.
    case signed

    private var lines: String {
        let start = """
            - id: \(rawValue)
              match: { path: /v1/\(rawValue) }
              mode: enforce
              sign:
            """
        return switch self {
        case .bare: start + " [method, target]\n"
        case .lenient: start + " [method, target]\n  on_error: forward\n"
        case .window: start + " [method, target]\n  counter: { window: 64 }\n"
        case .signed: start + " [method, target, body, challenge]\n"
        }
    }

    /// The rules as a list in YAML, and behind them `more`.
    static func list(_ rules: StockRule..., more: String = "") -> String {
        rules.map(\.lines).joined() + more
    }
}

extension SoftwareKey {
    /// The bytes of a GET that is signed as a ``StockRule`` asks: with a challenge over all parts,
    /// without one over method and target.
    mutating func get(
        _ path: String,
        challenge: String? = nil,
        damage: AssertionDamage? = nil
    ) -> [UInt8] {
        let request = Request(method: "GET", target: path, challenge: challenge)
        let signing = SigningForm.lines(challenge == nil ? [.method, .target] : .all, headers: [])
        let proof = proof(of: request, signing: signing, damage: damage)
        return Array((HTTPClient.head("GET", path, proof.fields) + "\r\n").utf8)
    }
}

extension Scenario {
    /// A gateway before a recording origin, and a key of the test app that it knows.
    func start(
        rules: String,
        more: String = ""
    ) throws -> (GatewayProcess, RecordingOrigin, SoftwareKey) {
        let origin = try origin()
        try configure(origin, rules: rules, more: more)
        let key = try imported()[0]
        return (try serve(), origin, key)
    }
}
