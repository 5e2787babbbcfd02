import AppleServices

extension RenewalSettings {
    /// The section `apple.receipts`.
    init(_ node: SourceNode?, log: ProblemLog) {
        self.init()
        let keys = ["renew", "rate", "every"]
        guard let node, let reader = MappingReader(node, "apple.receipts", keys: keys, log: log)
        else { return }
        if let flag = reader.flag("renew") { renews = flag.value }
        let rate = reader.value("rate", use: "calls a second, 1/s…1000/s") { text in
            let number = text.hasSuffix("/s") ? MappingReader.digits(text.dropLast(2)) : nil
            return number.flatMap { (1...1_000).contains($0) ? $0 : nil }
        }
        if let rate { perSecond = rate.value }
        let day = Duration.seconds(86_400)
        if let time = reader.duration("every", in: day...(day * 60)) { every = time.value }
    }
}
