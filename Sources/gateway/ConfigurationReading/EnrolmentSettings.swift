/// How fast keys may be enrolled.
package struct EnrolmentSettings: Hashable, Sendable {
    /// `rate`: keys a second for one app; faster is answered 429. Default 100/s, 1/s…10000/s. Apple
    /// asks to stay below 100 new keys a second.
    package var keysPerSecond = 100
    /// `burst`: keys at once after a pause. Default 200, 1…1000000.
    package var burst = 200

    package init() {}

    init(_ node: SourceNode?, log: ProblemLog) {
        self.init()
        guard let node,
            let reader = MappingReader(node, "enrolment", keys: ["rate", "burst"], log: log)
        else { return }
        let rate = reader.value("rate", use: "keys a second, 1/s…10000/s") { text in
            let number = text.hasSuffix("/s") ? MappingReader.digits(text.dropLast(2)) : nil
            return number.flatMap { (1...10_000).contains($0) ? $0 : nil }
        }
        if let rate { keysPerSecond = rate.value }
        if let number = reader.integer("burst", in: 1...1_000_000) { burst = number.value }
    }
}
