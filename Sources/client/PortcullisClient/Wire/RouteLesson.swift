import RequestBinding

/// What an answer says about what its route signs.
struct RouteLesson: Hashable, Sendable {
    /// What is signed; `nil` for nothing.
    let form: SigningForm?
    /// The proofs that the route accepts; `nil` where the answer does not say.
    let accepts: Set<SigningRequirement.Kind>?
    /// How the route compares counters.
    let counter: SigningRequirement.Counter
    /// Whether each request has to bring a new device token.
    let needsDeviceToken: Bool
    /// Whether the rule only observes: it forwards what it would refuse.
    let observes: Bool

    /// The widest window of counters that a gateway has.
    static let windowMax = 64

    /// - Parameters:
    ///   - sign: `method target body challenge` or a part of it, `content` or `challenge-text`.
    ///   - headers: names between spaces.
    ///   - accept: kinds between spaces.
    ///   - counter: the size of a window; anything else, or nothing, is strict.
    ///   - device: `token`; anything else, or nothing, is no token.
    ///   - observes: whether the answer was advice about a request that was forwarded.
    init?(
        sign: String?,
        headers: String?,
        accept: String?,
        counter: String?,
        device: String? = nil,
        observes: Bool = false
    ) {
        guard let sign else { return nil }
        let words = sign.split(separator: " ")
        switch words {
        case ["content"]: form = .content
        case ["challenge-text"]: form = .challenge
        case []: form = nil
        default:
            guard let parts = SignedParts(names: words) else { return nil }
            let names = (headers ?? "").split(separator: " ").map { $0.lowercased() }
            form = .lines(parts, headers: names)
        }
        accepts = accept.map {
            Set($0.split(separator: " ").compactMap { .init(rawValue: String($0)) })
        }
        let window = counter.flatMap { Int($0) } ?? 0
        self.counter = (1...Self.windowMax).contains(window) ? .window(window) : .strict
        self.observes = observes
        needsDeviceToken = device?.split(separator: " ").contains("token") ?? false
    }

    /// What the route asks, by this and by what was known before.
    func requirement(over known: SigningRequirement?) -> SigningRequirement? {
        guard let form else { return nil }
        var requirement = known ?? SigningRequirement()
        requirement.form = form
        requirement.counter = counter
        requirement.needsDeviceToken = needsDeviceToken
        if let accepts { requirement.accepts = accepts }
        // The other forms have the challenge in its field.
        if form != .content { requirement.challengePointer = nil }
        switch form {
        case .lines(let parts, _):
            if !parts.contains(.challenge) {
                requirement.challenge = .none
            } else if requirement.challenge == .none {
                requirement.challenge = .required
            }
        case .challenge: requirement.challenge = .required
        case .content: break
        }
        return requirement
    }
}

/// `App-Attest-Next`: what a request would be told if its rule enforced:
/// `enrol;sign="method target";headers="a b";accept="assertion";counter=64;key="…"`,
/// with `device="token"` where the rule asks for a device token, and with `error="session-unknown"`
/// where the request's session is not taken.
struct NextField: Hashable, Sendable {
    let next: GatewayRefusal.Next
    let lesson: RouteLesson?
    /// The key that the request named; `nil` where it named none, and from older gateways.
    let keyID: String?
    /// Why; `nil` where the field does not say.
    let reason: String?

    init?(_ text: String) {
        guard let item = FieldItem(text), let next = GatewayRefusal.Next(rawValue: item.word)
        else { return nil }
        self.next = next
        keyID = item["key"]
        reason = item["error"]
        lesson = RouteLesson(
            sign: item["sign"],
            headers: item["headers"],
            accept: item["accept"],
            counter: item["counter"],
            device: item["device"],
            observes: true
        )
    }
}
